"""The tree of a commit by lists: the present state of the listed paths, else the last commit.

Nothing else is read, so the cost does not depend on the size of the tree.  Where that could be
wrong, because a file system came or went, or not all names of a file are known, an error makes the
caller scan the whole tree instead.
"""

import os
from pathlib import Path

from huai_native._native import PackWriter
from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, is_within, show
from huai_server.commit.change_lists import ChangeLists
from huai_server.commit.next_commit import NextCommit
from huai_server.commit.tree_reader import ListedTree
from huai_server.scan.mounts import read_mounts

_FEW, _MOST = 1 << 16, 1 << 18
_SHARE = 8
"""The cost of a listed path, in entries of a scan."""


class ListsNotEnoughError(Exception):
    """Something unlisted has changed, or the lists are so long that a scan is quicker."""


def build_listed(
    making: NextCommit,
    root: Path,
    past: tuple[Snapshot, Totals],
    lists: ChangeLists,
    writer: PackWriter,
) -> ListedTree:
    """Return the tree of `past` (with its totals), with the present state of the listed paths.

    `root` is the tree, or a snapshot of it; objects go to `writer`.  Raises `ListsNotEnoughError`
    if the whole tree has to be read, or that is quicker.
    """
    _check_length(lists, past[1])
    before = read_mounts(making.places.mounts)
    for path in before:
        if not _is_mounted(os.path.join(bytes(root), path)):
            raise ListsNotEnoughError(f"the file system at {show(path)} is not mounted any more")

    def check_foreign(paths: list[bytes]) -> None:
        """Raise `ListsNotEnoughError` for a new mount point unless it was empty and stays so."""
        for path in paths:
            is_known = any(is_within(path, top) for top in before)
            is_empty = making.module.one_file_system and _is_empty(past[0], RelPath(path))
            if not is_known and not is_empty:
                raise ListsNotEnoughError(f"another file system is mounted at {show(path)}")

    named_paths = lists.change_list, lists.names_links
    listed = making.reader.read_listed(past, named_paths, check_foreign, writer)
    if listed is None:
        raise ListsNotEnoughError("a changed file has more names than are known")
    return listed


def _check_length(lists: ChangeLists, totals: Totals) -> None:
    """Raise `ListsNotEnoughError` for lists that cost more than a scan, in time or in memory."""
    if lists.paths > max(_FEW, min(_MOST, totals.entries // _SHARE)):
        raise ListsNotEnoughError(
            f"the list names {lists.paths:,} paths, and the last commit {totals.entries:,} entries"
        )


def _is_mounted(path: bytes) -> bool:
    """Return True if the path is a mount point; False if it is missing or unreadable."""
    try:
        return os.lstat(path).st_dev != os.lstat(os.path.dirname(path)).st_dev
    except OSError:
        return False


def _is_empty(past: Snapshot, path: RelPath) -> bool:
    """True if the last commit has no directory at a path, or nothing in it."""
    below = past.subtree(path)
    own = next(below, None)
    return own is None or (not own.leaves and next(below, None) is None)
