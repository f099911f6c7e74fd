"""The numbers of libcurl's errors (libcurl-errors(3)), by their meaning.

Pure, so that errors can be handled without loading libcurl.
"""

import re

from msgspec import Struct

from huai_client.config.proxies import Proxy
from huai_program.quoting import quoted

NOT_HTTP = frozenset({1, 3, 43})
NO_NAME = frozenset({5, 6})
"""The name of a host, or of a proxy, has no address."""
NO_HOST = NO_NAME | {7, 97}
"""No server responds at the address of the host, or of the proxy."""
ENDED_EARLY = frozenset({18, 52})
SILENT = 28
NOT_TRUSTED = frozenset({51, 60, 83, 90, 91})
NO_AUTHORITIES = frozenset({77, 82})
OWN_CERTIFICATE = 58
NO_TLS = 35
_TIME = r" after [0-9]+ ms(?=:|$)"
"""The part that differs from one attempt to the next."""
_NO_CONNECTION = r"Could(?:n't| not) connect to server$"
"""libcurl's words for any error of the system."""
_TEXT_MOST = 300


class CurlError(Struct, frozen=True):
    """The end of a transfer of libcurl."""

    number: int
    """0 for success."""
    text: str = ""
    system: str = ""
    """The system's error of the last connection."""

    @property
    def reason(self) -> str:
        """The message, made printable."""
        text = re.sub(_TIME, "", printable(self.text)) or "the connection broke"
        return re.sub(_NO_CONNECTION, lambda _: self.system or "no server responds", text)


class BrokenError(Exception):
    """A transfer that libcurl ended."""

    def __init__(self, error: CurlError, proxy: Proxy | None, refusal: str) -> None:
        """`proxy`: the one in use.  `refusal`: the reason why an address is not permitted."""
        super().__init__(error.reason)
        self.number = error.number
        self.reason = error.reason
        self.proxy = proxy
        self.refusal = refusal


class SlowError(TimeoutError):
    """A response that arrives too slowly."""


def printable(text: str) -> str:
    """Return the start of another program's message, on one line, without control characters."""
    return quoted(" ".join(text[:_TEXT_MOST].split()))
