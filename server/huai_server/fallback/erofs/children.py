"""The names in a directory, held compactly, and the blocks of directory entries made of them.

Pure.  Names are sorted by their bytes over the whole directory, with `.` and `..` among them: the
kernel uses a binary search.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from huai_server.fallback.erofs.ondisk import BLOCK, DIRENT_BYTES, pack_dirent

_DOTS = (b".", b"..")
_SLICE = 1 << 16
"""Bytes of names that are taken apart at a time."""


class Child(NamedTuple):
    """One name."""

    name: bytes
    nid: int
    kind: int


class Children:
    """A sorted list of names; each takes about 10 bytes more than the name."""

    def __init__(self) -> None:
        """Begin with none."""
        self._names = bytearray()
        self._nids = array("Q")
        self._kinds = bytearray()

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, name: bytes, nid: int, kind: int) -> None:
        """Add a name that comes after all others."""
        self._names += name
        self._names.append(0)
        self._nids.append(nid)
        self._kinds.append(kind)

    def __iter__(self) -> Iterator[Child]:
        return map(Child, self._split(), self._nids, self._kinds)

    def _split(self) -> Iterator[bytes]:
        start = 0
        while start < len(self._names):
            end = self._names.find(b"\0", start + _SLICE)
            end = len(self._names) - 1 if end < 0 else end
            yield from bytes(self._names[start:end]).split(b"\0")
            start = end + 1


class DirectoryBlock(NamedTuple):
    """A block of entries, without its padding."""

    data: bytes
    own: int | None
    """Where in this block the inode number of `.` is; None: it is in another block."""
    above: int | None
    """The same of `..`."""


def directory_blocks(children: Iterable[Child]) -> Iterator[DirectoryBlock]:
    """All entries of a directory, sorted, in as few blocks as they fit."""
    filled: list[Child] = []
    size = 0
    for child in children:
        more = DIRENT_BYTES + len(child.name)
        if size + more > BLOCK:
            yield _block(filled)
            filled, size = [], 0
        filled.append(child)
        size += more
    yield _block(filled)


def _block(children: list[Child]) -> DirectoryBlock:
    offset = len(children) * DIRENT_BYTES
    dots: dict[bytes, int] = {}
    entries: list[bytes] = []
    for name, nid, kind in children:
        if name in _DOTS:
            dots[name] = len(entries) * DIRENT_BYTES
        entries.append(pack_dirent(nid, offset, kind))
        offset += len(name)
    data = b"".join([*entries, *(child.name for child in children)])
    return DirectoryBlock(data, dots.get(b"."), dots.get(b".."))
