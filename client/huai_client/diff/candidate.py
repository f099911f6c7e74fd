"""The values of a comparison: candidates, differences, and sources of content.  Pure."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from huai_schema.entries import Entry
from huai_schema.paths import RelPath


class Candidate(NamedTuple):
    """A path with its local and its expected entry."""

    path: RelPath
    have: Entry | None
    """The local entry; None if the path is missing or `special`."""
    expected: Entry | None
    """The entry that should be there; None if the path should not exist."""
    past: tuple[Entry, ...] = ()
    """The entries of the applied snapshot and of those attempted since."""
    special: bool = False
    """True for a local device, socket or fifo."""
    differing: frozenset[str] = frozenset()
    """The names of the attributes in which `have` differs from `expected`.

    Any of "type", "size", "mtime", "mode", "owner", "group", "target", "link".  Owners are compared
    by number, and only where they can be set.  A name unknown on this machine never differs.
    """
    links: int = 1
    """The link count of the local inode."""
    digest: bytes | None = None
    """The digest of the local content, computed only if the attributes do not decide."""
    inode: tuple[int, int] = (0, 0)
    """Device and inode number of the local entry."""

    @property
    def present(self) -> bool:
        """True if anything exists at the path."""
        return self.have is not None or self.special


class Move(NamedTuple):
    """A rename of a directory with everything below it; nothing exists at `new`."""

    old: RelPath
    new: RelPath


class Remove(NamedTuple):
    """A removal of a file, symlink, special file or empty directory."""

    path: RelPath
    directory: bool


class TreeDiff(NamedTuple):
    """The differences between the local and the expected tree: the input of the planner."""

    candidates: Sequence[Candidate]
    """The candidates of the tree after `moves`."""
    moves: list[Move]
    extraneous: list[RelPath]
    """Paths in no snapshot that are kept; filled only when the whole tree was compared."""


class DifferenceKind(StrEnum):
    """The kind of a difference."""

    MISSING = "missing"
    EXTRANEOUS = "extraneous"
    DIFFERS = "differs"
    UNREADABLE = "unreadable"


class Difference(NamedTuple):
    """A path that differs from the snapshot."""

    path: RelPath
    kind: DifferenceKind
    attributes: tuple[str, ...] = ()
    """For `DIFFERS`, sorted: the names of `Candidate.differing`, and "digest"."""
    reason: str = ""
    """The reason for `UNREADABLE`."""


class FoundDifference(NamedTuple):
    """A difference, and the expected entry unless the path is extraneous."""

    difference: Difference
    expected: Entry | None = None


class Reuse(NamedTuple):
    """A local file with the content of a file to fetch."""

    source: RelPath
    mtime: int
    """The time of the source in ns; its size is that of the file to fetch."""
    most_links: int = 0
    """The highest link count at which the file may take over the inode."""
    sure: bool = True
    """True if size and time of the source are enough; otherwise its digest is compared."""
    tree: str = ""
    """The top of the tree that holds it; empty for the module's own tree."""
    twin: bool = False
    """True if the plan fetches `source` itself, so that one transfer serves both."""
