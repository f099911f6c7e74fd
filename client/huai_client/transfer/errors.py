"""The errors of a transfer.  A file that is missing upstream is no error, but a result."""

from huai_schema.errors import ExitCode, HuaiError


class TransferError(HuaiError):
    """Content could not be transferred."""

    exit_code = ExitCode.NETWORK


class TransientError(TransferError):
    """A failure that another attempt may not have."""


class ConnectionBrokenError(TransientError):
    """The upstream could not be reached, or the connection broke."""


class UnreachableError(ConnectionBrokenError):
    """Nothing accepts connections there, or its name is not known."""


class DroppedError(ConnectionBrokenError):
    """The other side dropped the connection before anything came.

    rsync before 3.2 reports this where a daemon has refused an option, and loses what it said.
    """


class UpstreamSilentError(TransientError):
    """The upstream stopped sending."""

    exit_code = ExitCode.TIMEOUT


class UnansweredError(UpstreamSilentError):
    """The upstream accepts connections, and sends nothing at all."""


class SlowerError(UpstreamSilentError):
    """Another content URL gives more, or deserves a trial."""


class UpstreamFullError(TransferError):
    """The upstream has reached its limit of connections: wait and ask again."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float = 0) -> None:
        """`retry_after`: seconds that it asks to be left alone for."""
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class OutOfTimeError(Exception):
    """The deadline passed before everything was done; never leaves the package."""


class UpstreamRefusedError(TransferError):
    """The upstream refused, and will refuse another attempt too."""


class OptionRefusedError(UpstreamRefusedError):
    """The daemon refuses an option of rsync that can be left out."""

    def __init__(self, message: str, *, hint: str, option: str) -> None:
        """`option` as it was given."""
        super().__init__(message, hint=hint)
        self.option = option


class WrongContentError(TransferError):
    """What came is not what the metadata say, though it passes itself off as that.

    It was refused, file by file; nothing else is wrong with the upstream.
    """


class NoRangesError(UpstreamRefusedError):
    """The upstream hands out whole files only."""


class NameRefusedError(UpstreamRefusedError):
    """rsync gave up because of one of the files asked for; the others may still be transferred."""

    def __init__(self, message: str, *, hint: str, reason: str) -> None:
        """`reason` is rsync's message."""
        super().__init__(message, hint=hint)
        self.reason = reason


class LocalWriteError(HuaiError):
    """The staging area could not be written."""

    exit_code = ExitCode.FILE_IO


class DiskFullError(LocalWriteError):
    """The destination's file system has no room left."""


class RsyncRequirementError(HuaiError):
    """rsync is missing or too old."""

    exit_code = ExitCode.REQUIREMENT
