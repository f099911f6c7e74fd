"""A request that is not served: the one error type between a check and its HTTP status."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from huai_schema.errors import ExitCode, HuaiError

READ_METHODS = ("GET", "HEAD")
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class HttpError(HuaiError):
    """A request that ends with `status`; the client reads the message and the hint.

    They must not carry paths of this machine or text of the request.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.NETWORK

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str = "",
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.headers = headers


def check_method(method: str, *allowed: str) -> None:
    """Raise status 405 unless `method` is one of `allowed` (RFC 9110, 15.5.6)."""
    if method not in allowed:
        message = f"this address is for {allowed[0]}"
        raise HttpError(405, message, headers={"Allow": ", ".join(allowed)})


class ClientGoneError(HuaiError):
    """The client closed the connection or stopped reading, and gets no response."""

    exit_code: ClassVar[ExitCode] = ExitCode.NETWORK
