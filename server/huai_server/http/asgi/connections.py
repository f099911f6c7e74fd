"""How many connections one server has, altogether and from each address, and who has to go.

A connection waits as long as the client has not said all of its request.  One that answers
within a moment is never in danger: only those that wait longest give way to new ones, so that
half a request cannot keep others out, however many send one.

One household or server has a whole /64 of IPv6, so that counts as one address.  A trusted proxy has
none: it stands for many, and says for whom in X-Forwarded-For, which uvicorn puts in the place of
its address.
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
"""From the address in a socket or header to the one that is counted; empty: not limited."""
_log = logging.getLogger(__name__)


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


def client_address(scope: Mapping[str, Any], address_of: AddressOf) -> str:
    """The client's address for the limits: from the last trusted proxy, else the socket's."""
    client = scope.get("client")
    address = address_of(client[0]) if client else ""
    if address:
        return address
    said = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    hosts = b",".join(said).decode("latin-1").split(",")
    counted = (address_of(host.strip()) for host in reversed(hosts))
    return next(filter(None, counted), "")


class Member(Protocol):
    """A connection."""

    def hang_up(self) -> None:
        """Close at once."""


class ConnectionLimit:
    """Limits connections, altogether and for each address."""

    def __init__(self, limit: int, each: int, address_of: AddressOf) -> None:
        """`limit` of all, `each` of one address."""
        self._limit = limit
        self._each = each
        self._address_of = address_of
        self._members: dict[Member, str] = {}
        self._waiting: dict[Member, None] = {}
        self._counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter(address=0, all=0)
        """Connections that were closed at a limit, by which one it was."""
        self._logged: set[str] = set()
        """Addresses whose limit was logged, until they have no connection; "": the limit of all."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._members)

    def join(self, member: Member, host: str) -> bool:
        """Add a connection from `host`, as waiting; False if a limit forbids it."""
        address = self._address_of(host) if host else ""
        if address and self._counts[address] >= self._each:
            self.refused["address"] += 1
            if address not in self._logged:
                self._logged.add(address)
                _log.warning("%s: more than %d connections; closed", address, self._each)
            return False
        if len(self._members) >= self._limit and not self._make_room():
            return False
        self._members[member] = address
        self._counts[address] += 1
        self._waiting[member] = None
        return True

    def _make_room(self) -> bool:
        """Close the connection that has waited longest; False if none is waiting."""
        self.refused["all"] += 1
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            if "" not in self._logged:
                self._logged.add("")
                _log.warning("%d connections are served; others are closed", self._limit)
            return False
        self.leave(oldest)
        oldest.hang_up()
        return True

    def leave(self, member: Member) -> None:
        """Forget a connection, if it is known."""
        address = self._members.pop(member, None)
        if address is None:
            return
        self._waiting.pop(member, None)
        self._logged.discard("")
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]
            self._logged.discard(address)

    def wait(self, member: Member) -> None:
        """From now on `member` is waiting for its client."""
        if member in self._members:
            self._waiting[member] = None

    def serve(self, member: Member) -> None:
        """From now on the server answers `member`."""
        self._waiting.pop(member, None)
