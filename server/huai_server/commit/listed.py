"""The tree of a commit by lists: the present state of the listed paths, else the last commit.

Nothing else is read, so the cost does not depend on the size of the tree.  Where that could be
wrong, because a file system came or went, or not all names of a file are known, an error makes the
caller scan the whole tree instead.

An export into the tree is written before the commit, from the scanned tree.  Then its files are
scanned as if a list named them, so that the same commit has the lists that describe it.
"""

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from huai_native._native import PackWriter
from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, is_within, show
from huai_server.commit.change_lists import ChangeLists, list_of
from huai_server.commit.next_commit import NextCommit
from huai_server.commit.result import CommitOptions
from huai_server.commit.tree_reader import ListedTree
from huai_server.scan.mounts import read_mounts
from huai_server.scan.root import empty_root_error, holds_anything
from huai_server.scan.types import Problem

if TYPE_CHECKING:  # few commits export anything
    from huai_server.export.into_tree import ExportOfTree

_FEW, _MOST = 1 << 16, 1 << 18
_SHARE = 8
"""The cost of a listed path, in entries of a scan."""


class WrittenTree(NamedTuple):
    """The result of a scan that was written."""

    tree: bytes
    """The id of the root directory's tree."""
    top: bytes | None
    """The tree of the commit, if one is needed."""
    totals: Totals
    problems: tuple[Problem, ...]


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


def prepare_export(root: Path, options: CommitOptions, export: "ExportOfTree") -> None:
    """Create the directories of an export.

    Raises `EmptyRootError` if the tree is empty before, unless `allow_empty`.
    """
    if not options.allow_empty and not holds_anything(root):
        raise empty_root_error(root)
    export.prepare()


def scan_again(
    making: NextCommit, root: Path, written: WrittenTree, paths: Collection[RelPath]
) -> WrittenTree:
    """Scan `paths` again, and write their objects; return the tree with their present state.

    Extends the record of links.  Raises `ListsNotEnoughError` if the whole tree must be scanned.
    Remarks come from the first scan: no other program writes these files.
    """
    past = Snapshot(making.repository, written.tree), written.totals
    with making.open_pack() as writer:
        listed = build_listed(making, root, past, list_of(root, paths), writer)
        top = making.finish(listed.tree, writer)
    making.links.extend(listed.pairs)
    again = {problem.path for problem in listed.problems}
    problems = (*(each for each in written.problems if each.path not in again), *listed.problems)
    return WrittenTree(listed.tree, top, listed.totals, problems)


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
