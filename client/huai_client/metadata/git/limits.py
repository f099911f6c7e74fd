"""What a reply may cost at most, whatever it says; counted before it is spent.

The values leave honest mirrors of 10 million entries a tenth or less of each.  What bounds a
pack whoever reads it, such as the number of its objects, stands in `native/format/src/limits.rs`.
"""

from huai_client.run.deadline import NEVER, Deadline
from huai_schema.errors import FormatError

REPLY_BYTES = 4 << 30
"""A whole pack."""

TALK_BYTES = 1 << 20
"""What git may print besides; it may be twice as much as the pack, too."""

MEMORY_BYTES = 2 << 30
"""Data and heap of each process of git."""

PROCESSOR_SECONDS = 900
"""Time of the processor for each process of git."""

NAMING_BYTES = 256 << 20
"""Trees and commits of one pack, which are in memory until it is known to be complete."""

WORK_BYTES = 32 << 30
"""Bytes inflated and bytes made by deltas, repetitions included: a few minutes."""

WORK_FREE = 1 << 30
"""The same for a pack of a few bytes: a few seconds, for large trees that are here already."""

WORK_PER_BYTE = 1024
"""Beyond that, for each byte that came; deflate unfolds a byte to 1032 at most."""

HELD_BYTES = 64 << 20
"""Bases in memory, those of one object at work apart."""


class Work:
    """Counts what is inflated and made, and looks at the time."""

    __slots__ = ("_deadline", "_left")

    def __init__(self, limit: int = WORK_FREE, deadline: Deadline = NEVER) -> None:
        """`limit` in bytes, before anything came."""
        self._left = limit
        self._deadline = deadline

    @property
    def left(self) -> int:
        """Bytes that may still be made."""
        return self._left

    def allow(self, packed: int) -> None:
        """Raise the limit for a pack of `packed` bytes, to `WORK_BYTES` at most."""
        self._left = min(self._left + packed * WORK_PER_BYTE, WORK_BYTES)

    def spend(self, size: int) -> None:
        """Say that `size` bytes are about to be made.

        `FormatError` beyond the limit, `TimeUpError` after the deadline.
        """
        self._left -= size
        if self._left < 0:
            raise FormatError("a pack that unfolds to more than the limit", "the upstream's reply")
        self.check()

    def check(self) -> None:
        """`TimeUpError` after the deadline."""
        if self._deadline is not NEVER:
            self._deadline.check("the metadata did not come in time, and nothing was changed")
