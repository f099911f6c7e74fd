"""Whose address a request comes from, for the limits that hold for each.

Pure.  One household or server has a whole /64 of IPv6, so that counts as one address.  A
trusted proxy has none: it stands for many, and says for whom in X-Forwarded-For, which
uvicorn puts in the place of its address.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address, ip_address, ip_network

_CACHED = 4096
_ADDRESS_LENGTH = 64
"""Longer ones are no addresses: what stands in a header may be anything."""

AddressOf = Callable[[str], str]
"""From what a socket or header says to what is counted; empty: not limited."""


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
