"""What the native maker is told to do, as bytes (c/maker.h).

Pure.  A maintainer has to keep `_HEADER` and the numbers in step with the C header.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import ROOT, RelPath, basename, join
from huai_server.fallback.owners import OwnerIds

_HEADER = struct.Struct("=qqIIIIIIII")
_ENTER, _FILE, _SYMLINK, _LINK, _DIRECTORY, _ATTRIBUTES, _MOVE, _REMOVE = range(1, 9)
_NANOSECONDS = 1_000_000_000
_LEAVE_OWNER = (1 << 32) - 1
_IN_A_DIRECTORY = (_FILE, _SYMLINK, _LINK, _DIRECTORY, _REMOVE)


class Record(NamedTuple):
    """One record, read back."""

    offset: int
    operation: int
    name: bytes


class Records:
    """Collects records until they are taken."""

    def __init__(self, owners: OwnerIds | None) -> None:
        """Numbers come from `owners`; None: entries keep the owner they are made with."""
        self._owners = owners
        self._parts: list[bytes] = []
        self.size = 0
        """Bytes that wait to be taken."""

    def take(self) -> bytes:
        """All records since the last time."""
        taken = b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        return taken

    def enter(self, directory: RelPath) -> None:
        """What follows is in this directory."""
        self._add(_ENTER, directory)

    def leaf(self, leaf: File | Symlink) -> None:
        """A file, a further name of one, or a symlink, in the directory entered."""
        name = basename(leaf.path)
        if isinstance(leaf, Symlink):
            self._add(_SYMLINK, name, leaf, other=leaf.target)
        elif leaf.link is None:
            self._add(_FILE, name, leaf, size=leaf.size)
        else:
            self._add(_LINK, name, other=leaf.link)

    def directory(self, directory: Directory) -> None:
        """An empty one, in the directory entered."""
        self._add(_DIRECTORY, basename(directory.path), directory)

    def attributes(self, directory: Directory) -> None:
        """Those of a directory that is there."""
        self._add(_ATTRIBUTES, directory.path, directory)

    def move(self, old: RelPath, new: RelPath) -> None:
        """A directory with all below it."""
        self._add(_MOVE, old, other=new)

    def remove(self, path: RelPath) -> None:
        """One name, with all below it, out of the directory entered."""
        self._add(_REMOVE, basename(path))

    def _add(
        self,
        operation: int,
        name: bytes,
        entry: File | Symlink | Directory | None = None,
        *,
        size: int = 0,
        other: bytes | None = None,
    ) -> None:
        seconds = nanoseconds = mode = 0
        uid = gid = _LEAVE_OWNER
        if entry is not None:
            seconds, nanoseconds = divmod(entry.mtime, _NANOSECONDS)
            mode = entry.mode
            if self._owners is not None:
                uid, gid = self._owners.uid(entry.owner), self._owners.gid(entry.group)
        second = 0 if other is None else len(other) + 1
        numbers = size, seconds, nanoseconds, uid, gid, mode, operation, len(name) + 1, second, 0
        record = _HEADER.pack(*numbers) + name + b"\0"
        if other is not None:
            record += other + b"\0"
        self._parts.append(record)
        self.size += len(record)


def path_at(records: bytes, offset: int, entered: RelPath) -> RelPath:
    """The path that the record at `offset` is about, if `entered` was so before the first one."""
    for record in _read(records):
        if record.operation == _ENTER:
            entered = RelPath(record.name)
        if record.offset == offset:
            inside = record.operation in _IN_A_DIRECTORY
            return join(entered, record.name) if inside else RelPath(record.name)
    return ROOT


def last_entered(records: bytes, entered: RelPath) -> RelPath:
    """The directory that is entered after all of them."""
    paths = [record.name for record in _read(records) if record.operation == _ENTER]
    return RelPath(paths[-1]) if paths else entered


def _read(records: bytes) -> Iterator[Record]:
    offset = 0
    while offset < len(records):
        *_, operation, name, other, _ = _HEADER.unpack_from(records, offset)
        begin = offset + _HEADER.size
        yield Record(offset, operation, records[begin : begin + name - 1])
        offset = begin + name + other
