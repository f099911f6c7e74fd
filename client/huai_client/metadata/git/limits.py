"""The limits on the cost of a reply, checked before the cost arises.

Honest mirrors of 10 million entries use a tenth or less of each.  The limits that hold for every
reader of a pack, such as the number of its objects, are in `native/git/src/limits.rs`.
"""

from huai_client.run.options import NEVER, Deadline

REPLY_BYTES = 4 << 30
"""The size of a pack."""

TALK_BYTES = 1 << 20
"""Other output of git; twice the size of the pack is allowed, too."""

MEMORY_BYTES = 2 << 30
"""Data and heap of each process of git."""

PROCESSOR_SECONDS = 900
"""CPU time of each process of git."""

NAMING_BYTES = 256 << 20
"""Trees and commits of one pack, which are in memory until the pack is known to be complete."""

WORK_BYTES = 32 << 30
"""Bytes inflated and bytes made by deltas, repetitions included: a few minutes."""

WORK_FREE = 1 << 30
"""The same for a pack of a few bytes: a few seconds, for large trees that are here already."""

WORK_PER_BYTE = 1024
"""Additional work for each byte received; deflate expands a byte to 1032 at most."""

HELD_BYTES = 64 << 20
"""Bases in memory, without those of the object being resolved."""


class WorkLimit:
    """A counter of bytes inflated and made, and the deadline until which that may take."""

    __slots__ = ("_deadline", "left")

    def __init__(self, limit: int = WORK_FREE, deadline: Deadline = NEVER) -> None:
        """`limit` in bytes, before any data was received."""
        self.left = limit
        """Bytes that may still be made, as the engine counts them."""
        self._deadline = deadline

    def allow(self, packed: int) -> None:
        """Raise the limit for a pack of `packed` bytes, to `WORK_BYTES` at most."""
        self.left = min(self.left + packed * WORK_PER_BYTE, WORK_BYTES)

    def check(self) -> None:
        """Raise `TimeUpError` after the deadline."""
        if self._deadline is not NEVER:
            self._deadline.check("the metadata did not arrive in time, and nothing was changed")
