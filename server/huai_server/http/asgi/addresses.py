"""The address that a request counts for, in the limits for each address.

Pure.  A household or a server has a whole /64 of IPv6, so that counts as one address.  A trusted
proxy is not limited: it stands for many clients, and names them in X-Forwarded-For; uvicorn
replaces the proxy's address with that.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address, ip_address, ip_network

_CACHED = 4096
_ADDRESS_LENGTH = 64
"""Longer text is not an address: a header may hold anything."""

AddressOf = Callable[[str], str]
"""From the address in a socket or header to the one that is counted; empty: not limited."""


def address_of(proxies: Iterable[str]) -> AddressOf:
    """The function that knows these `proxies`, addresses or networks (`ValueError` if not)."""
    networks = [ip_network(proxy, strict=False) for proxy in proxies]

    @lru_cache(maxsize=_CACHED)
    def counted(host: str) -> str:
        try:
            address = ip_address(host[:_ADDRESS_LENGTH].partition("%")[0])
        except (AddressValueError, ValueError):
            return host[:_ADDRESS_LENGTH]
        if isinstance(address, IPv6Address):
            address = address.ipv4_mapped or address
        if any(address.version == each.version and address in each for each in networks):
            return ""
        return str(ip_network((address, 64 if address.version == 6 else 32), strict=False))

    return counted
