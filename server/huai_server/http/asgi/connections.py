"""All connections of one server: how many there may be, and who has to go if it is full.

A connection waits as long as the client has not said all of its request.  One that answers
within a moment is never in danger: only those that wait longest give way to new ones, so that
half a request cannot keep others out, however many send one.
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
    """Counts connections, altogether and for each address."""

    def __init__(self, limit: int, each: int, address_of: AddressOf) -> None:
        """`limit` of all, `each` of one address."""
        self._limit = limit
        self._each = each
        self._address_of = address_of
        self._members: dict[Member, str] = {}
        self._waiting: dict[Member, None] = {}
        self._counts: Counter[str] = Counter()
        self._logged: set[str] = set()
        """Addresses that the log has complained of, until they have no connection; empty: all."""

    def join(self, member: Member, host: str) -> bool:
        """Take in a connection from `host`, which waits; False if there is no room for it."""
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
        """Send away whoever waits longest; False if the server owes all of them an answer."""
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
        """It is up to the client to say something."""
        if member in self._members:
            self._waiting[member] = None

    def serve(self, member: Member) -> None:
        """It is up to the server."""
        self._waiting.pop(member, None)
