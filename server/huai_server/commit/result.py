"""What is asked of a commit or an audit, and what it did.  Values only."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from huai_schema.codec.commits import Counts
from huai_schema.diff.diff import Difference
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath
from huai_server.commit.change_lists import ChangeLists
from huai_server.commit.remarks import Remark
from huai_server.scan.types import Problem
from huai_server.store.repository import Head


class CommitOptions(NamedTuple):
    """What is asked of a commit."""

    allow_empty: bool = False
    """Commit even a tree without any entry."""
    accept_mounts: bool = False
    """Take what is there now where a file system came or went."""
    wait: float = 0
    """Seconds to wait for another commit of the module."""
    lists: Callable[[Path], ChangeLists] | None = None
    """Reads lists of what changed in a tree: only what they name is looked at."""


_NO_CHANGE = Counts()


USUAL = CommitOptions()
"""Nothing in particular."""


class ListedResult(NamedTuple):
    """What became of the lists of a commit."""

    lists: ChangeLists
    scanned: str
    """Why the whole tree was looked at all the same; empty: it was not."""
    unknown: int
    """Named paths at which nothing is, and nothing was."""
    first_unknown: tuple[RelPath, ...]


class CommitResult(NamedTuple):
    """What a commit did."""

    head: Head
    """The newest commit, made now or before."""
    changed: bool
    """Whether a commit was made; False: the tree is as it was."""
    counts: Counts = _NO_CHANGE
    problems: tuple[Problem, ...] = ()
    """Paths that could not be looked at; their old entries stay."""
    remarks: tuple[Remark, ...] = ()
    """What was left out on purpose, and what downstreams may have trouble with."""
    hashed_files: int = 0
    hashed_bytes: int = 0
    listed: ListedResult | None = None
    """What became of the lists, if there were any."""
    missed: int | None = None
    """Entries that differ and that no list named since the last look at the whole tree.

    None: this was no such look, or the last commit was one, too."""

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        return ExitCode.INCOMPLETE if self.problems else ExitCode.OK


class AuditResult(NamedTuple):
    """In what a tree differs from its last commit."""

    head: Head
    counts: Counts
    first: tuple[Difference, ...]
    """Some of what differs."""
    problems: tuple[Problem, ...]
    """Paths that could not be looked at."""

    @property
    def differing(self) -> int:
        """How many entries differ."""
        counts = self.counts
        return counts.added + counts.removed + counts.changed + counts.moved

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        if self.differing:
            return ExitCode.DIFFERS
        return ExitCode.INCOMPLETE if self.problems else ExitCode.OK
