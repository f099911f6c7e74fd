"""The tree of a commit by lists: what stands at the named paths, and the last commit for the rest.

Nothing else is looked at, so the cost does not depend on the tree.  Where that could be wrong,
because a file system came or went, or a file has names of which nothing is known, the caller is
told to look at the whole tree instead.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from huai_native._native import HardlinkGroups, Looked
from huai_schema.codec.commits import Totals
from huai_schema.git.objects import ObjectWriter
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, show
from huai_server.commit.change_lists import ChangeLists
from huai_server.commit.digest.columns import DigestColumns
from huai_server.commit.remarks import Remarks
from huai_server.commit.tree_builder import CLAMPED, KEPT, LEFT_OUT
from huai_server.scan import native
from huai_server.scan.mounts import read_mounts
from huai_server.scan.types import TIME, Problem, ScanOptions
from huai_server.state.paths import ModulePlaces

_FEW, _MOST = 1 << 16, 1 << 18
_SHARE = 8
"""A path that is named costs as much as so many entries of a scan."""


class ListsNotEnoughError(Exception):
    """Something has changed that lists do not name; or they name so much that a scan is quicker."""


class ListedTree(NamedTuple):
    """What came of the lists."""

    tree: bytes
    """The id of the root directory's tree."""
    totals: Totals
    problems: tuple[Problem, ...]
    pairs: bytes
    """Hardlink groups that were found (`link_record`)."""
    unknown: int
    """Named paths at which nothing is, and nothing was."""
    first_unknown: tuple[RelPath, ...]


class Listing(NamedTuple):
    """What a tree is made from."""

    root: Path
    options: ScanOptions
    past: Snapshot
    totals: Totals
    """Of the last commit."""
    places: ModulePlaces


def build_listed(
    made_from: Listing,
    lists: ChangeLists,
    columns: DigestColumns | None,
    remarks: Remarks,
    writer: ObjectWriter,
) -> ListedTree:
    """The tree of the last commit with what stands at the named paths now.

    `columns`: None: without digests.
    """
    root, options, past, totals, places = made_from
    _check_length(lists, totals)
    looked = native.look(root, options, lists.named, places.hardlinks)
    _check_mounts(looked, made_from)
    problems = [*_problems(looked, past, remarks)]
    if columns is not None:
        changed = columns.fill_looked(looked, past=past)
        problems += (each._replace(outcome=_outcome(past, each.path)) for each in changed)
    groups = HardlinkGroups()
    looked.resolve(groups)
    if not (lists.names_links or groups.is_complete):
        raise ListsNotEnoughError("a file that changed has more names than are known")
    tree, added, removed, (unknown, first) = looked.amend(
        (past.reader, past.tree, past.limit), lists.named, writer
    )
    counted = (old + more - less for old, more, less in zip(totals, added, removed, strict=True))
    return ListedTree(
        tree,
        Totals(*counted),
        tuple(problems),
        groups.take_pairs(),
        unknown,
        tuple(map(RelPath, first)),
    )


def _check_length(lists: ChangeLists, totals: Totals) -> None:
    """Refuse lists that are so long that they cost more than a scan, in time or in memory."""
    if lists.paths > max(_FEW, min(_MOST, totals.entries // _SHARE)):
        raise ListsNotEnoughError(
            f"the list names {lists.paths:,} paths, and the last commit {totals.entries:,} entries"
        )


def _problems(looked: Looked, past: Snapshot, remarks: Remarks) -> Iterator[Problem]:
    for item in native.remarkable(looked):
        remarks.take(item)
        for problem in item.problems:
            own = problem.reason == TIME
            yield problem._replace(outcome=CLAMPED if own else _outcome(past, problem.path))
    for path, reason in native.unreadable(looked):
        yield Problem(path, reason, _outcome(past, path))


def _outcome(past: Snapshot, path: RelPath) -> str:
    return KEPT if past.entry(path) is not None else LEFT_OUT


def _check_mounts(looked: Looked, made_from: Listing) -> None:
    """Refuse to go on where old entries may have to stay."""
    before = read_mounts(made_from.places.mounts)
    for path in before:
        if not _is_mounted(os.path.join(bytes(made_from.root), path)):
            raise ListsNotEnoughError(f"what was mounted at {show(path)} is not any more")
    for path in looked.foreign():
        known = any(path == top or path.startswith(top + b"/") for top in before)
        empty = made_from.options.one_file_system and _is_empty(made_from.past, RelPath(path))
        if not known and not empty:
            raise ListsNotEnoughError(f"another file system is mounted at {show(path)}")


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
