"""A request that is not served: the one error type between a check and its HTTP status."""

from typing import ClassVar

from huai_schema.errors import ExitCode, HuaiError


class HttpError(HuaiError):
    """Ends a request with `status`; message and hint are what the other side gets to read.

    They must not carry paths of this machine or text that the request brought along.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.NETWORK

    def __init__(self, status: int, message: str, *, hint: str = "", retry_after: int = 0) -> None:
        """`retry_after` (seconds), if not 0, is sent as the header of that name."""
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after = retry_after


class ClientGoneError(HuaiError):
    """The client closed the connection or stopped reading: no answer can reach it."""

    exit_code: ClassVar[ExitCode] = ExitCode.NETWORK
