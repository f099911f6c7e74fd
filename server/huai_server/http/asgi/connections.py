"""The limits of connections, in all and from each address, and which one gives way.

A connection is waiting until its client has sent a whole request.  Only the ones that have waited
longest give way to new ones, and one that answers within a moment is never closed, so half-sent
requests cannot keep others out, however many there are.

A household or server has a whole /64 of IPv6, so that counts as one address.  A trusted proxy is
not counted: it names its clients in X-Forwarded-For, and uvicorn replaces its address with theirs.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address, ip_address, ip_network
from typing import Any, Protocol

_CACHED = 4096
_ADDRESS_LENGTH = 64
"""Longer text is not an address: a header may hold anything."""

AddressOf = Callable[[str], str]
"""A function from the address in a socket or header to the counted one; "" is not limited."""
_log = logging.getLogger(__name__)


def address_of(proxies: Iterable[str]) -> AddressOf:
    """Return the `AddressOf` for the trusted `proxies`, addresses or networks.

    Raises `ValueError` for another text.
    """
    networks = [ip_network(proxy, strict=False) for proxy in proxies]

    @lru_cache(maxsize=_CACHED)
    def counted(host: str) -> str:
        """Return an IPv4 address or the /64 of an IPv6 address; empty for a proxy."""
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


def client_address(scope: Mapping[str, Any], address_of: AddressOf) -> str:
    """Return the client's address for the limits, from the socket or the last trusted proxy.

    Empty if it is unknown.
    """
    client = scope.get("client")
    address = address_of(client[0]) if client else ""
    if address:
        return address
    forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    hosts = b",".join(forwarded).decode("latin-1").split(",")
    counted = (address_of(host.strip()) for host in reversed(hosts))
    return next(filter(None, counted), "")


class Member(Protocol):
    """A connection that is counted."""

    def hang_up(self) -> None:
        """Close the connection at once."""


class ConnectionLimit:
    """A limit for connections: `limit` in all, and `per_address` for each address."""

    def __init__(self, limit: int, per_address: int, address_of: AddressOf) -> None:
        self._limit = limit
        self._per_address = per_address
        self._address_of = address_of
        self._members: dict[Member, str] = {}
        self._waiting: dict[Member, None] = {}
        self._counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter(address=0, all=0)
        """The number of connections that were closed, new and old ones, by the limit."""
        self._logged: set[str] = set()
        """Addresses whose limit was logged, until they have none; "" for the common limit."""

    @property
    def count(self) -> int:
        """Return the number of connections."""
        return len(self._members)

    def admit(self, member: Member, host: str) -> bool:
        """Count a new connection from `host`; return False if a limit forbids it.

        At the common limit, the connection that has waited longest for its client's request is
        closed for it.  Counts each closed one; logs, once an address, that new ones are refused.
        """
        address = self._address_of(host) if host else ""
        if address and self._counts[address] >= self._per_address:
            self.refused["address"] += 1
            if address not in self._logged:
                self._logged.add(address)
                _log.warning(
                    "%s: more than %d connections: closing new ones", address, self._per_address
                )
            return False
        if len(self._members) >= self._limit and not self._make_room():
            return False
        self._members[member] = address
        self._counts[address] += 1
        self._waiting[member] = None
        return True

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for a request; count it.

        Returns False, and logs it, if all requests are complete.
        """
        self.refused["all"] += 1
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            if "" not in self._logged:
                self._logged.add("")
                _log.warning("all %d connections are in use: closing new ones", self._limit)
            return False
        self.leave(oldest)
        oldest.hang_up()
        return True

    def leave(self, member: Member) -> None:
        """Stop counting a connection, if it is counted."""
        address = self._members.pop(member, None)
        if address is None:
            return
        self._waiting.pop(member, None)
        self._logged.discard("")
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]
            self._logged.discard(address)

    def set_waiting(self, member: Member) -> None:
        """Mark `member` as waiting for its client's next request."""
        if member in self._members:
            self._waiting[member] = None

    def set_answered(self, member: Member) -> None:
        """Mark `member` as one whose request is complete, which is not closed for another."""
        self._waiting.pop(member, None)
