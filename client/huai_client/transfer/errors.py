"""How a transfer fails.  Names that are missing upstream are no failure, but a result."""

from huai_schema.errors import ExitCode, HuaiError


class TransferError(HuaiError):
    """Content could not be brought here."""

    exit_code = ExitCode.NETWORK


class TransientError(TransferError):
    """Worth another attempt."""


class ConnectionBrokenError(TransientError):
    """The upstream could not be reached, or the connection broke."""


class UpstreamSilentError(TransientError):
    """The other side stopped sending."""

    exit_code = ExitCode.TIMEOUT


class UpstreamFullError(TransferError):
    """The upstream serves as many clients as it may: wait in line."""


class OutOfTimeError(Exception):
    """The deadline passed with something left to do; never leaves the package."""


class UpstreamRefusedError(TransferError):
    """The upstream answered, and no attempt will make it answer otherwise."""


class NameRefusedError(UpstreamRefusedError):
    """rsync gave up because of something that was asked for; all else may well come."""

    def __init__(self, message: str, *, hint: str, reason: str) -> None:
        """`reason` is what rsync said of it."""
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
