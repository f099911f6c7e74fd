"""A view of a tree after its directories are renamed, which reads them at their old paths.

Changes nothing.  No directory of a move is inside one of another.
"""

import os
from collections.abc import Sequence

from huai_client.diff.candidate import Move
from huai_client.tree import View
from huai_client.tree.errors import moving
from huai_native import _native
from huai_schema.paths import RelPath


class RenamedView(View):
    """Another view as after some moves, with its handles: only one of the two is closed.

    Rule to keep: each method reads a path where it is `before` the moves.
    """

    def __init__(self, view: View, moves: Sequence[Move]) -> None:
        """Share the handles of `view`."""
        vars(self).update(vars(view))
        self._renames = _native.Renames(moves)

    def stat(self, path: RelPath) -> os.stat_result | None:
        """Return the status of `path`, as `View.stat` does; None if it is moved away."""
        before = self._renames.before(path)
        return None if before is None else super().stat(RelPath(before))

    def target(self, path: RelPath) -> bytes:
        """Return the target of a symlink; raises `PathError` as `View.target` does."""
        return super().target(self._before(path))

    def listing(self, path: RelPath) -> tuple[list[bytes], list[bytes]]:
        """Return the names in a directory; raises `PathError` as `View.listing` does."""
        return super().listing(self._before(path))

    def open_file(self, path: RelPath) -> int:
        """Open a regular file, or raise `PathError`; the caller closes the handle."""
        return super().open_file(self._before(path))

    def _before(self, path: RelPath) -> RelPath:
        """Return the path before the moves; raises `PathError` if it is about to be moved."""
        before = self._renames.before(path)
        if before is None:
            raise moving(path)
        return RelPath(before)
