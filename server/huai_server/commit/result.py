"""The options of a commit, and the results of a commit or an audit.  Values only."""

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


def _ignore(_done: int, _all: int) -> None:
    """Show nothing."""


class CommitOptions(NamedTuple):
    """The options of a commit."""

    allow_empty: bool = False
    accept_mounts: bool = False
    """Commit the present entries where a file system came or went."""
    wait: float = 0
    """Seconds to wait for another commit of the module."""
    engine: str = ""
    """The URL of the engine that scans shards; empty for that of the configuration."""
    shards: Path | None = None
    """The folder with results of shards."""
    on_shards: Callable[[int, int], None] = _ignore
    """Called with the number of shards that an engine has scanned, and of all."""
    at: Path | None = None
    """A snapshot of the tree, which is read in its place."""
    lists: Callable[[Path], ChangeLists] | None = None
    """Reads lists of the changes in a tree; only the listed paths are scanned."""


USUAL = CommitOptions()


class ListedResult(NamedTuple):
    """The result for the lists of a commit."""

    lists: ChangeLists
    scan_cause: str
    """The reason for which the whole tree was scanned all the same; empty if it was not."""
    unknown: int
    """Listed paths without an entry now or before."""
    first_unknown: tuple[RelPath, ...]


class CommitResult(NamedTuple):
    """The result of a commit."""

    head: Head
    """The newest commit, made now or before."""
    changed: bool
    """True if a commit was made."""
    counts: Counts = Counts()
    problems: tuple[Problem, ...] = ()
    """Paths that could not be read; their old entries stay."""
    remarks: tuple[Remark, ...] = ()
    """Entries left out on purpose, and those that may cause downstreams trouble."""
    hashed_files: int = 0
    hashed_bytes: int = 0
    """The files that this run read for their digests, and their bytes."""
    listed: ListedResult | None = None
    missed: int | None = None
    """Entries that differ although no list named them since the last scan of the whole tree.

    None if this was no such scan, or if the last commit was one too."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code: `INCOMPLETE` if there are problems, else `OK`."""
        return ExitCode.INCOMPLETE if self.problems else ExitCode.OK


class AuditResult(NamedTuple):
    """The differences between a tree and its last commit."""

    head: Head
    counts: Counts
    first: tuple[Difference, ...]
    """The first differences."""
    problems: tuple[Problem, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The exit code: `DIFFERS` if there are changes, `INCOMPLETE` for problems, else `OK`."""
        if self.counts.total:
            return ExitCode.DIFFERS
        return ExitCode.INCOMPLETE if self.problems else ExitCode.OK
