"""The errors of a transfer.  A file that is missing upstream is a result, not an error."""

from huai_schema.errors import ExitCode, HuaiError

RETRY_HINT = "sync again: files that have arrived are kept"


class TransferError(HuaiError):
    """Content could not be transferred."""

    exit_code = ExitCode.NETWORK


class TransientError(TransferError):
    """A failure that may not recur at another attempt."""


class ConnectionBrokenError(TransientError):
    """The upstream could not be reached, or the connection broke."""


class UnreachableError(ConnectionBrokenError):
    """The host accepts no connections, or its name cannot be resolved."""


class DroppedError(ConnectionBrokenError):
    """The other side dropped the connection before it sent anything.

    rsync before 3.2 reports this after a daemon has refused an option, and loses the message.
    """


class UpstreamSilentError(TransientError):
    """The upstream stopped sending."""

    exit_code = ExitCode.TIMEOUT


class UnansweredError(UpstreamSilentError):
    """The upstream accepts connections, and sends nothing at all."""


class SlowerError(UpstreamSilentError):
    """Another content URL is faster, or deserves a trial."""


class UpstreamFullError(TransferError):
    """The upstream has reached its limit of connections: wait and try again."""

    def __init__(self, message: str, retry_after: float = 0) -> None:
        """`retry_after`: seconds to wait, as the upstream demands."""
        super().__init__(message, hint="use fewer streams, or sync at another time")
        self.retry_after = retry_after


class OutOfTimeError(Exception):
    """The deadline passed before the transfer was complete; never leaves the package."""


class UpstreamRefusedError(TransferError):
    """The upstream refused, and will refuse another attempt too."""


class OptionRefusedError(UpstreamRefusedError):
    """The daemon refuses an option of rsync that can be left out."""

    def __init__(self, message: str, *, hint: str, option: str) -> None:
        """`option` as it was passed."""
        super().__init__(message, hint=hint)
        self.option = option


class WrongContentError(TransferError):
    """Content that does not match the metadata, though its size or headers do.

    It was rejected, file by file; nothing else is wrong with the upstream.
    """


class NoRangesError(UpstreamRefusedError):
    """The upstream serves whole files only."""


class NameRefusedError(UpstreamRefusedError):
    """rsync gave up because of one requested file; the others may still be transferred."""

    def __init__(self, message: str, *, hint: str, reason: str) -> None:
        """`reason` is rsync's message."""
        super().__init__(message, hint=hint)
        self.reason = reason


class LocalWriteError(HuaiError):
    """The staging area could not be written."""


class DiskFullError(LocalWriteError):
    """The destination's file system is full."""


class RsyncRequirementError(HuaiError):
    """rsync is missing or too old."""

    exit_code = ExitCode.REQUIREMENT
