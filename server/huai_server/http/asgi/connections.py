"""All connections of one server: how many there may be, and which is closed when it is full.

A connection is waiting until the client has sent a whole request.  A new connection to a full
server replaces the one that has waited longest.  So clients that send half a request and stop
cannot keep others out, and a client that sends its request at once is safe.
"""

import logging
from collections import Counter
from typing import Protocol

from huai_server.http.asgi.addresses import AddressOf

_log = logging.getLogger(__name__)


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
        self._logged: set[str] = set()
        """Addresses whose limit was logged, until they have no connection; "": the limit of all."""

    def join(self, member: Member, host: str) -> bool:
        """Add a connection from `host`, as waiting; False if a limit forbids it."""
        address = self._address_of(host) if host else ""
        if address and self._counts[address] >= self._each:
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
