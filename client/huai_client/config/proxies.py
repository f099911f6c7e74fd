"""The proxies that the environment names.

urllib knows the rules for `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`.  libcurl, for
content URLs of client.toml, and rsync read the environment themselves: for them this only reports
the proxy that they use; `source.daemon` connects as rsync does.
"""

import os
from contextlib import suppress
from urllib.parse import SplitResult

from msgspec import Struct

from huai_program.urls import masked, split_url

RSYNC_PROXY = "RSYNC_PROXY"


class Proxy(Struct, frozen=True):
    """A proxy, and the variable that names it."""

    variable: str
    url: SplitResult

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.url.hostname or "", self.url.port or 0

    @property
    def login(self) -> bytes:
        """USER:PASSWORD, or empty."""
        return os.fsencode(self.url.netloc.rpartition("@")[0])

    def __str__(self) -> str:
        return f"the proxy {masked(self.url.geturl())} of {self.variable}"

    @property
    def hint(self) -> str:
        """The advice to repair or to disable the proxy."""
        without = "unset it" if self.variable == RSYNC_PROXY else "name the host in no_proxy"
        return f"check the proxy that {self.variable} in the environment names, or {without}"


def proxy_for(url: SplitResult) -> Proxy | None:
    """Return the environment's proxy for a URL of HTTP, or None if none is set or it is bypassed.

    Raises `ValueError` for a proxy that is malformed or has no host.
    """
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    import urllib.request  # takes long to load, and few have a proxy

    proxies = urllib.request.getproxies()
    scheme = url.scheme if url.scheme in proxies else "all"
    address = proxies.get(scheme)
    if not address or urllib.request.proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    variables = (f"{scheme}_proxy", f"{scheme}_proxy".upper())
    variable = next((each for each in variables if os.environ.get(each)), variables[0])
    url_parts = split_url(address if "://" in address else f"http://{address}")
    if not url_parts.hostname:
        raise ValueError(f"the proxy has no host: {variable}")
    return Proxy(variable, url_parts)


def rsync_proxy() -> Proxy | None:
    """Return the proxy that rsync uses for daemons, or None if none is set or it is malformed."""
    address = os.environ.get(RSYNC_PROXY, "")
    with suppress(ValueError):  # rsync reports the error
        return Proxy(RSYNC_PROXY, split_url(f"http://{address}")) if address else None
    return None
