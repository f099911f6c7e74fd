"""How many entries may still come: what stops a snapshot that claims to be endless.

A few git objects can describe an exponentially large tree by naming one subtree many times.
Whoever goes through a snapshot spends from a budget as it reads (FORMAT.md, "Limits").
"""

from huai_schema.errors import FormatError


class Budget:
    """Starts at a limit; `FormatError` as soon as it is overdrawn."""

    def __init__(self, limit: int) -> None:
        """`limit` entries may be spent."""
        self._limit = limit
        self._left = limit

    def spend(self, entries: int, place: str) -> None:
        """Some more entries were met at `place`."""
        self._left -= entries
        if self._left < 0:
            raise FormatError(f"the snapshot has more than {self._limit} entries", place)
