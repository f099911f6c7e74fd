"""A path that may have to change, and what the metadata says of its content.  Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from huai_schema.entries import Entry
from huai_schema.paths import RelPath


class Candidate(NamedTuple):
    """One path, as it is and as it should be."""

    path: RelPath
    have: Entry | None
    """What is there; None: nothing, or something `special`."""
    wanted: Entry | None
    """What should be there; None: nothing."""
    past: tuple[Entry, ...] = ()
    """The entries of the applied snapshot and of those attempted since."""
    special: bool = False
    """Whether a device, socket or fifo is there."""
    differing: frozenset[str] = frozenset()
    """The names of the attributes in which what is there differs from `wanted`.

    Any of "type", "size", "mtime", "mode", "owner", "group", "target", "link".  Owners are compared
    by number, and only where they can be set; a name that is unknown on this machine never differs.
    """
    links: int = 1
    """Names that the inode has."""
    digest: bytes | None = None
    """Of the local content, if nothing else could tell whether it is the wanted one."""
    inode: tuple[int, int] = (0, 0)
    """Device and inode number of what is there."""

    @property
    def present(self) -> bool:
        """Whether anything is there."""
        return self.have is not None or self.special


class Move(NamedTuple):
    """Rename a directory with all that it holds; there is nothing at `new`."""

    old: RelPath
    new: RelPath


class Remove(NamedTuple):
    """Unlink a file, symlink or special file, or remove an empty directory."""

    path: RelPath
    directory: bool


class TreeDiff(NamedTuple):
    """How the tree differs from the wanted one: the input of the planner."""

    candidates: Sequence[Candidate]
    """Of the tree as it is after `moves`."""
    moves: list[Move]
    extraneous: list[RelPath]
    """Paths that no snapshot names and that stay; found only when the whole tree was compared."""
