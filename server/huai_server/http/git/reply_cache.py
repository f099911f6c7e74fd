"""Finished replies in bounded memory; the least recently used one is dropped first.

Rule: a key holds everything that the reply depends on, above all the state of the branch.  So no
entry has to be removed when a commit is made: it is just never asked for again.
"""

from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple


class Key(NamedTuple):
    """What one reply depends on."""

    repository: Path
    state: bytes
    """Of the branch (`refs.read_branch_state`)."""
    version: int
    """Of git's protocol: 0, 1 or 2."""
    advert: bool
    request: bytes
    """Digest of the request body; empty for an advert."""


class ReplyCache:
    """Maps keys to bodies of at most `largest` bytes, `limit` bytes in all."""

    def __init__(self, limit: int) -> None:
        """`limit` 0 keeps nothing."""
        self._limit = limit
        self._entries: OrderedDict[Key, bytes] = OrderedDict()
        self.size = 0
        self.largest = limit // 8

    def get(self, key: Key) -> bytes | None:
        """The reply, which counts as used now."""
        body = self._entries.get(key)
        if body is not None:
            self._entries.move_to_end(key)
        return body

    def put(self, key: Key, body: bytes) -> None:
        """Remember a reply, if it is not too large."""
        cost = _cost(body)
        if len(body) > self.largest or cost > self._limit:
            return
        old = self._entries.pop(key, None)
        self.size += cost - (0 if old is None else _cost(old))
        self._entries[key] = body
        while self.size > self._limit:
            _, dropped = self._entries.popitem(last=False)
            self.size -= _cost(dropped)


def _cost(body: bytes) -> int:
    """Bytes of memory: the body, and about as much as a key and its place in the table take."""
    return len(body) + 512
