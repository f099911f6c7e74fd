"""Directories that vanished here and came back there, found by their ids."""

from huai_schema.paths import RelPath, ancestors


class Moves:
    """Which vanished directories can be renamed whole; each serves once."""

    def __init__(self) -> None:
        """Nothing is on offer yet."""
        self._sources: dict[bytes, list[RelPath]] = {}
        self._broken: set[RelPath] = set()
        self._taken: set[RelPath] = set()

    def offer(self, path: RelPath, oid: bytes) -> None:
        """A directory that is not at `path` any more."""
        self._sources.setdefault(oid, []).append(path)

    def take(self, oid: bytes) -> RelPath | None:
        """Where a directory with this id came from, if it is still there in one piece."""
        for index, path in enumerate(self._sources.get(oid, ())):
            above = ancestors(path)
            if path not in self._broken and self._taken.isdisjoint(above):
                del self._sources[oid][index]
                self._taken.add(path)
                self._broken.update(above)
                return path
        return None

    def has_taken(self, path: RelPath) -> bool:
        """Whether the directory at `path` went elsewhere."""
        return path in self._taken
