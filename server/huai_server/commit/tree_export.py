"""What is exported into the tree, and has to be in the commit that it describes.

It is written before the commit, of what was looked at; then its files are looked at, as if a list
named them, so that one commit has the lists that describe it.
"""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, Protocol

from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.commit.change_lists import list_of
from huai_server.commit.listed import build_listed
from huai_server.commit.next_commit import NextCommit
from huai_server.commit.result import CommitOptions
from huai_server.scan.root import empty_root, holds_anything
from huai_server.scan.types import Problem
from huai_server.store.repository import Repository


class TreeExport(Protocol):
    """Writes files into the tree that the commit is to hold as well."""

    def prepare(self) -> None:
        """Before the tree is looked at."""
        ...

    @property
    def files(self) -> Collection[RelPath]:
        """All that it may write."""
        ...

    def write(self, repository: Repository, scanned: Snapshot, size: int, time: int) -> bool:
        """Of what was scanned, `size` bytes of files, at `time`; whether the tree was changed."""
        ...


class WrittenTree(NamedTuple):
    """What a look at the tree came to."""

    tree: bytes
    """The id of the root directory's tree."""
    top: bytes | None
    """The tree of the commit; None: none has to be made."""
    totals: Totals
    problems: tuple[Problem, ...]


def prepare(root: Path, options: CommitOptions, export: TreeExport) -> None:
    """Let the directories of an export be made, but never those that hide that a tree is empty."""
    if not options.allow_empty and not holds_anything(root):
        raise empty_root(root)
    export.prepare()


def look_again(
    making: NextCommit, root: Path, seen: WrittenTree, paths: Collection[RelPath]
) -> WrittenTree:
    """What was looked at, with what stands at `paths` now.

    Remarks are left to the first look: nobody else writes these files.
    """
    past = Snapshot(making.repository, seen.tree), seen.totals
    with making.writing() as writer:
        found = build_listed(making, root, past, list_of(root, paths), writer)
        top = making.finish(found.tree, writer)
    making.links.extend(found.pairs)
    again = {problem.path for problem in found.problems}
    problems = (*(each for each in seen.problems if each.path not in again), *found.problems)
    return WrittenTree(found.tree, top, found.totals, problems)
