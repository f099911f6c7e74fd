"""The tree of a commit by lists: what stands at the named paths, and the last commit for the rest.

Nothing else is looked at, so the cost does not depend on the tree.  Where that could be wrong,
because a file system came or went, or a file has names of which nothing is known, the caller is
told to look at the whole tree instead.
"""

import os
from pathlib import Path

from huai_native._native import PackWriter
from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, show
from huai_server.commit.change_lists import ChangeLists
from huai_server.commit.next_commit import NextCommit
from huai_server.commit.tree_reader import ListedTree
from huai_server.scan.mounts import read_mounts

_FEW, _MOST = 1 << 16, 1 << 18
_SHARE = 8
"""A path that is named costs as much as so many entries of a scan."""


class ListsNotEnoughError(Exception):
    """Something has changed that lists do not name; or they name so much that a scan is quicker."""


def build_listed(
    making: NextCommit,
    root: Path,
    past: tuple[Snapshot, Totals],
    lists: ChangeLists,
    writer: PackWriter,
) -> ListedTree:
    """The tree of `past` with what stands at the named paths now; `past`: also its totals."""
    _check_length(lists, past[1])
    before = read_mounts(making.places.mounts)
    for path in before:
        if not _is_mounted(os.path.join(bytes(root), path)):
            raise ListsNotEnoughError(f"what was mounted at {show(path)} is not any more")

    def check_foreign(paths: list[bytes]) -> None:
        """Refuse to go on where old entries may have to stay."""
        for path in paths:
            known = any(path == top or path.startswith(top + b"/") for top in before)
            empty = making.module.one_file_system and _is_empty(past[0], RelPath(path))
            if not known and not empty:
                raise ListsNotEnoughError(f"another file system is mounted at {show(path)}")

    named = lists.named, lists.names_links
    found = making.reader.read_listed(past, named, check_foreign, writer)
    if found is None:
        raise ListsNotEnoughError("a file that changed has more names than are known")
    return found


def _check_length(lists: ChangeLists, totals: Totals) -> None:
    """Refuse lists that are so long that they cost more than a scan, in time or in memory."""
    if lists.paths > max(_FEW, min(_MOST, totals.entries // _SHARE)):
        raise ListsNotEnoughError(
            f"the list names {lists.paths:,} paths, and the last commit {totals.entries:,} entries"
        )


def _is_mounted(path: bytes) -> bool:
    try:
        return os.lstat(path).st_dev != os.lstat(os.path.dirname(path)).st_dev
    except OSError:
        return False


def _is_empty(past: Snapshot, path: RelPath) -> bool:
    """Whether the last commit has nothing below a path."""
    below = past.subtree(path)
    own = next(below, None)
    return own is None or (not own.leaves and next(below, None) is None)
