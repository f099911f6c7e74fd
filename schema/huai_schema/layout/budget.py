"""How much may still come: what stops a snapshot that claims to be endless.

A few git objects can describe an exponentially large tree by naming one subtree many times.
Whoever goes through a snapshot spends from a budget as it reads (FORMAT.md, "Limits").  What is
held in memory on the way is text and names of directories, so these are counted as well.
"""

from huai_schema.errors import FormatError
from huai_schema.limits import ENTRY_BYTES, LISTING_BYTES


class Budget:
    """Starts at a limit; `FormatError` as soon as it is overdrawn."""

    def __init__(self, limit: int) -> None:
        """`limit` entries may be spent, and what so many can take."""
        self._limit = limit
        self._left = limit
        self._trees = limit
        self._bytes = ENTRY_BYTES * limit + LISTING_BYTES

    def spend(self, entries: int, place: str) -> None:
        """Some more entries were met at `place`."""
        self._left -= entries
        if self._left < 0:
            raise FormatError(f"the snapshot has more than {self._limit} entries", place)

    def spend_trees(self, count: int, place: str) -> None:
        """The directory at `place` names so many own directories, which nobody has met yet."""
        self._trees -= count
        if self._trees < 0:
            raise FormatError(f"the snapshot has more than {self._limit} entries", place)

    def spend_bytes(self, size: int, place: str) -> None:
        """So many bytes of manifests and columns were read at `place`."""
        self._bytes -= size
        if self._bytes < 0:
            reason = f"the manifests of {self._limit} entries are longer than they can be"
            raise FormatError(reason, place)
