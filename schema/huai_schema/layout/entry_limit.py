"""What one look at a snapshot may cost: what stops a snapshot that claims to be endless.

A few git objects can describe an exponentially large tree by naming one subtree many times.
Whoever reads a snapshot counts what it meets (FORMAT.md, "Limits").  Text and the names of
directories are held in memory on the way, so these are counted as well.
"""

from huai_schema.limits import ENTRY_BYTES, LISTING_BYTES, Quota


class EntryLimit:
    """Quotas for entries and what they can take; `FormatError` as soon as one is exceeded."""

    def __init__(self, limit: int) -> None:
        """`limit`: how many entries there may be."""
        more = f"the snapshot has more than {limit} entries"
        longer = f"the manifests of {limit} entries are longer than they can be"
        self._entries = Quota(limit, more)
        self._trees = Quota(limit, more)
        self._bytes = Quota(ENTRY_BYTES * limit + LISTING_BYTES, longer)

    def spend(self, entries: int, place: str) -> None:
        """Some more entries were met at `place`."""
        self._entries.spend(entries, place)

    def spend_trees(self, count: int, place: str) -> None:
        """The directory at `place` names so many own directories, which nobody has met yet."""
        self._trees.spend(count, place)

    def spend_bytes(self, size: int, place: str) -> None:
        """So many bytes of manifests and columns were read at `place`."""
        self._bytes.spend(size, place)
