"""What a reply may cost at most, whatever it says; counted before it is spent.

The values leave honest mirrors of 10 million entries a tenth or less of each.
"""

from huai_schema.errors import FormatError

REPLY_BYTES = 4 << 30
"""A whole reply, packed."""

OBJECTS = 1 << 20
"""Objects of one pack; each takes a few hundred bytes of memory while it is indexed."""

CHAIN_DEPTH = 4095
"""Deltas from an object to the whole one it is made from: the most that git itself writes."""

WORK_BYTES = 32 << 30
"""Bytes inflated and bytes made by deltas, repetitions included: a few minutes."""

HELD_BYTES = 64 << 20
"""Bases in memory, those of one object at work apart."""


class Work:
    """Counts what is inflated and made."""

    __slots__ = ("_left",)

    def __init__(self, limit: int = WORK_BYTES) -> None:
        """`limit` in bytes."""
        self._left = limit

    def spend(self, size: int) -> None:
        """Say that `size` bytes are about to be made; `FormatError` beyond the limit."""
        self._left -= size
        if self._left < 0:
            raise FormatError("a pack that unfolds to more than the limit", "the upstream's reply")
