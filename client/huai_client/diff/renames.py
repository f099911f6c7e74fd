"""A tree as it will be when its directories have been renamed; what is looked at is there already.

Changes nothing.  No directory of a move is inside one of another.
"""

import os
from collections.abc import Callable, Sequence

from huai_client.diff.candidate import Move
from huai_client.tree import View
from huai_client.tree.errors import moving
from huai_native import _native
from huai_schema.paths import RelPath


class Renames:
    """Where paths are before some moves."""

    def __init__(self, moves: Sequence[Move]) -> None:
        """`moves` are made all at once."""
        self.engine = _native.Renames(moves)

    def before(self, path: RelPath) -> RelPath | None:
        """The path at which now is what will be at `path`; None: nothing will be there."""
        before = self.engine.before(path)
        return None if before is None else RelPath(before)

    def arrives(self, path: RelPath) -> bool:
        """Whether `path` will be in a directory that moves."""
        return self.engine.arrives(path)


class RenamedView(View):
    """Another view, which stays open as long, after some moves.

    Rule to keep: whatever looks at a path looks where it is `before` the moves.
    """

    def __init__(self, view: View, moves: Sequence[Move]) -> None:
        """Opens nothing: the handles are those of `view`."""
        vars(self).update(vars(view))
        self._renames = Renames(moves)

    def stat(self, path: RelPath) -> os.stat_result | None:
        """As of a `View`."""
        before = self._renames.before(path)
        return None if before is None else super().stat(before)

    def survey(
        self, candidates: _native.Candidates, renames: _native.Renames | None = None
    ) -> None:
        """As of a `View`."""
        super().survey(candidates, renames or self._renames.engine)

    def hash_candidates(
        self,
        candidates: _native.Candidates,
        damaged: bytes,
        tick: Callable[[], None],
        renames: _native.Renames | None = None,
    ) -> None:
        """As of a `View`."""
        super().hash_candidates(candidates, damaged, tick, renames or self._renames.engine)

    def target(self, path: RelPath) -> bytes:
        """As of a `View`."""
        return super().target(self._before(path))

    def listing(self, path: RelPath) -> tuple[list[bytes], list[bytes]]:
        """As of a `View`."""
        return super().listing(self._before(path))

    def open_file(self, path: RelPath) -> int:
        """As of a `View`."""
        return super().open_file(self._before(path))

    def _before(self, path: RelPath) -> RelPath:
        before = self._renames.before(path)
        if before is None:
            raise moving(path)
        return before
