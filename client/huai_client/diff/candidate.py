"""A path that may have to change, and what the metadata says of its content.  Pure."""

from typing import NamedTuple

from huai_schema.entries import Entry, File
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
    """Attributes in which `have` differs from `wanted`; see `local_entry.differences`."""
    links: int = 1
    """Names that the inode has."""
    digest: bytes | None = None
    """Of the local content, if `worth_hashing` said so."""
    inode: tuple[int, int] = (0, 0)
    """Device and inode number of what is there."""


def worth_hashing(candidate: Candidate) -> bool:
    """Whether only reading the local file can tell if its content is the wanted one."""
    have, wanted = candidate.have, candidate.wanted
    if not isinstance(have, File) or not isinstance(wanted, File):
        return False
    if wanted.digest is None or wanted.link is not None or have.size != wanted.size:
        return False
    known = _matching(candidate, have)
    if have.mtime == wanted.mtime:
        return any(digest not in (None, wanted.digest) for digest in known)
    return not known or any(digest != wanted.digest for digest in known)


def content_is_here(candidate: Candidate) -> bool:
    """Whether the local file has the wanted content, so that nothing need be fetched.

    If the local digest is known, it decides.  Else the size has to be right, and either the time,
    too (rsync's own rule), or an earlier snapshot has the wanted digest for this size and time.
    """
    have, wanted = candidate.have, candidate.wanted
    if not isinstance(have, File) or not isinstance(wanted, File) or have.size != wanted.size:
        return False
    if candidate.digest is not None:
        return candidate.digest == wanted.digest
    if have.mtime == wanted.mtime:
        return True
    return wanted.digest is not None and known_digest(candidate) == wanted.digest


def known_digest(candidate: Candidate) -> bytes | None:
    """The digest of the local file: it was read, or all earlier snapshots have the same one."""
    if candidate.digest is not None or not isinstance(candidate.have, File):
        return candidate.digest
    known = set(_matching(candidate, candidate.have))
    return known.pop() if len(known) == 1 else None


def replaces(candidate: Candidate) -> bool:
    """Whether a regular file, first of its hardlink group, gets another inode."""
    wanted = candidate.wanted
    if not isinstance(wanted, File) or wanted.link is not None:
        return False
    return "link" in candidate.differing or not content_is_here(candidate)


def _matching(candidate: Candidate, have: File) -> list[bytes | None]:
    """Digests of the earlier snapshots that have the file's present size and time."""
    return [
        entry.digest
        for entry in candidate.past
        if isinstance(entry, File) and (entry.size, entry.mtime) == (have.size, have.mtime)
    ]


class Move(NamedTuple):
    """Rename a directory with all that it holds; there is nothing at `new`."""

    old: RelPath
    new: RelPath


class TreeDiff(NamedTuple):
    """How the tree differs from the wanted one: the input of the planner."""

    candidates: list[Candidate]
    """Of the tree as it is after `moves`."""
    moves: list[Move]
    extraneous: list[RelPath]
    """Paths that no snapshot names and that stay; found only when the whole tree was compared."""
