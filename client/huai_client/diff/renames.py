"""A tree as it will be when its directories have been renamed; what is looked at is there already.

Changes nothing.  No directory of a move is inside one of another.
"""

import os
from collections.abc import Iterable, Sequence

from huai_client.diff.candidate import Move
from huai_client.tree import PathError, View
from huai_schema.entries import Entry, File
from huai_schema.paths import RelPath, ancestors


class Renames:
    """Where paths are before some moves."""

    def __init__(self, moves: Iterable[Move]) -> None:
        """`moves` are made all at once."""
        self._sources = {move.new: move.old for move in moves}
        self._vacated = {*self._sources.values()}

    def before(self, path: RelPath) -> RelPath | None:
        """The path at which now is what will be at `path`; None: nothing will be there."""
        for above in (path, *ancestors(path)) if self._sources else ():
            if above in self._sources:
                return RelPath(self._sources[above] + path[len(above) :])
            if above in self._vacated:
                return None
        return path

    def arrives(self, path: RelPath) -> bool:
        """Whether `path` will be in a directory that moves."""
        return not self._sources.keys().isdisjoint(ancestors(path))


class RenamedView(View):
    """Another view, which stays open as long, after some moves.

    Rule to keep: whatever looks at a path looks where it is `before` the moves.
    """

    def __init__(self, view: View, moves: Iterable[Move]) -> None:
        """Opens nothing: the handles are those of `view`."""
        vars(self).update(vars(view))
        self._renames = Renames(moves)

    def stat(self, path: RelPath) -> os.stat_result | None:
        """As of a `View`."""
        before = self._renames.before(path)
        return None if before is None else super().stat(before)

    def survey(self, places: Sequence[tuple[RelPath, Entry | None]]) -> tuple[bytes, bytes]:
        """As of a `View`."""
        return super().survey([(self._before(path), self._as_now(entry)) for path, entry in places])

    def target(self, path: RelPath) -> bytes:
        """As of a `View`."""
        return super().target(self._before(path))

    def listing(self, path: RelPath) -> tuple[list[bytes], list[bytes]]:
        """As of a `View`."""
        return super().listing(self._before(path))

    def open_file(self, path: RelPath) -> int:
        """As of a `View`."""
        return super().open_file(self._before(path))

    def _as_now(self, entry: Entry | None) -> Entry | None:
        """`entry`, with the path that the leader of its group has now."""
        if isinstance(entry, File) and entry.link is not None:
            return entry._replace(link=self._before(entry.link))
        return entry

    def _before(self, path: RelPath) -> RelPath:
        before = self._renames.before(path)
        if before is None:
            raise PathError(path, "it is going to be moved")
        return before
