"""The export into the tree that is committed.

Its files are written before the commit, from the scanned tree; then they are scanned as if a list
named them, so that the same commit has the lists that describe it.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.commit.change_lists import list_of
from huai_server.commit.listed import build_listed
from huai_server.commit.next_commit import NextCommit
from huai_server.commit.result import CommitOptions
from huai_server.scan.root import empty_root_error, holds_anything
from huai_server.scan.types import Problem

if TYPE_CHECKING:  # few commits export anything
    from huai_server.export.into_tree import ExportOfTree


class WrittenTree(NamedTuple):
    """The result of a scan that was written."""

    tree: bytes
    """The id of the root directory's tree."""
    top: bytes | None
    """The tree of the commit, if one is needed."""
    totals: Totals
    problems: tuple[Problem, ...]


def prepare(root: Path, options: CommitOptions, export: "ExportOfTree") -> None:
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
