"""A few names at the top of a tree, by which a poll checks quickly that the tree still exists.

Imports very little, because each poll calls it.  If one of the names exists, a poll may end with
"nothing new"; otherwise the sync continues and finds out what is wrong.
"""

import os
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from huai_client.state.state import State

if TYPE_CHECKING:
    from huai_client.diff.selection import Selection

_MOST = 8
_LOOKED_AT = 256
"""The number of entries among which names of the top directory are searched."""


def tree_exists(dest: str, state: State) -> bool:
    """Return True if `dest` is an absolute path of a directory that has a name of `state.marks`.

    A tree with one entry needs no name.  Makes a few calls of lstat(2), usually one.
    """
    if not os.path.isabs(dest) or os.path.islink(dest) or not os.path.isdir(dest):
        return False
    if state.entries <= 1:  # only the top directory, if anything
        return True
    return any(os.path.lexists(os.path.join(dest, name)) for name in state.marks)


def marks_of(selection: "Selection") -> tuple[str, ...]:
    """Return at most 8 names in the top directory of an applied tree, for `tree_exists`."""
    from huai_schema.paths import ROOT, RelPath

    def names() -> Iterable[bytes]:
        """Yield the names at the top of the tree, from its first entries."""
        snapshot = selection.snapshot
        for path in snapshot.own_directory(ROOT, snapshot.tree).children:
            if selection.rules.reaches(RelPath(path), directory=True):
                yield path
        for entry in islice(selection.entries(), 1, _LOOKED_AT):
            yield entry.path.partition(b"/")[0]

    return tuple(map(os.fsdecode, islice(dict.fromkeys(names()), _MOST)))
