"""The addresses of a host to connect to; internal ones must be allowed.

A name is resolved once and the connection uses these addresses, so that a name that changes a
moment later leads nowhere else.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from huai_program.addresses import is_internal
from huai_schema.errors import ExitCode, HuaiError

PORTS = {"http": 80, "https": 443, "rsync": 873}
_MOST = 8


class UnreachableError(HuaiError):
    """A host cannot be connected to, or refuses what it is asked."""

    exit_code = ExitCode.NETWORK

    def __init__(self, message: str, *, may_pass: bool, hint: str = "") -> None:
        """`may_pass`: another attempt may help."""
        super().__init__(message, hint=hint)
        self.may_pass = may_pass


def resolve(url: str, *, internal: bool) -> list[IPv4Address | IPv6Address]:
    """Look up the addresses of the host of `url`, at most 8.

    Raises `UnreachableError` if it cannot be looked up, or an address is internal unless `internal`
    allows that.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:_MOST]
    except OSError as error:
        raise UnreachableError(f"{host}: {error.strerror}", may_pass=True) from error
    addresses = [ip_address(str(each[4][0]).partition("%")[0]) for each in infos]
    refused = [each for each in addresses if is_internal(each)]
    if refused and not internal:
        raise UnreachableError(
            f"{host} is {refused[0]}, an address of this network",
            may_pass=False,
            hint="to allow it, set internal = true",
        )
    return addresses


def for_libcurl(url: str, *, internal: bool) -> list[str]:
    """Return the addresses of `resolve`, with its errors, as a list for CURLOPT_RESOLVE."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    listed = map(in_url, resolve(url, internal=internal))
    shown_host = f"[{host}]" if ":" in host else host
    return [f"{shown_host}:{port}:{','.join(listed)}"]


def in_url(address: IPv4Address | IPv6Address) -> str:
    """Return an address in the form of a URL: IPv6 in brackets."""
    return f"[{address}]" if address.version == 6 else str(address)
