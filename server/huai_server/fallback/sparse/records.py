"""The engine's maker of sparse files, and its instructions as bytes.

Rule to keep: `_HEADER` and the numbers must equal those of `native/tree/src/attr_tree/record.rs`.
"""

import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from huai_native import _native
from huai_schema.codec.escaping import unescape
from huai_schema.codec.listing import Listing
from huai_schema.entries import ROOT_OWNER, Directory, File, Symlink
from huai_schema.paths import RelPath, basename, parent
from huai_server.fallback.owners import OwnerIds

_HEADER = struct.Struct("=qqIIIIIIII")
_ENTER, _FILE, _SYMLINK, _LINK, _DIRECTORY, _REMOVE, _LEAVES = range(1, 8)
_ATTRIBUTES, _MOVE, _OWNER = range(8, 11)
_NANOSECONDS = 1_000_000_000
_LEAVE_OWNER = (1 << 32) - 1
_OWNER_FIELD = re.compile(rb"\t([ug][^\t\n]+)")
"""An owner column of a line; the other columns begin with digits, `-` or `>`."""


class Records:
    """A buffer of records, which enters the directories of names as needed."""

    def __init__(self, owners: OwnerIds | None) -> None:
        """Take ids from `owners`; with None entries keep the owner with which they are made."""
        self._owners = owners
        self._parts: list[bytes] = []
        self._sent_owners: set[bytes] = set()
        self._entered: RelPath | None = None
        self.size = 0
        """The bytes in the buffer."""

    def flush(self) -> bytes:
        """Return all records in the buffer, and empty it."""
        records = b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        return records

    def enter(self, directory: RelPath) -> None:
        """Enter a directory, in which the names of the following records are."""
        if directory != self._entered:
            self._add(_ENTER, directory)
            self._entered = directory

    def leaf(self, leaf: File | Symlink) -> None:
        """Make a file, a further name of one, or a symlink."""
        self.enter(parent(leaf.path))
        name = basename(leaf.path)
        if isinstance(leaf, Symlink):
            self._add(_SYMLINK, name, leaf, other=leaf.target)
        elif leaf.link is None:
            self._add(_FILE, name, leaf, size=leaf.size)
        else:
            self._add(_LINK, name, other=leaf.link)

    def leaves(self, listing: Listing) -> None:
        """Make all files and symlinks of a directory from their lines."""
        self.enter(listing.path)
        uid = gid = _LEAVE_OWNER
        if self._owners is not None:
            uid, gid = self._owners.uid(ROOT_OWNER), self._owners.gid(ROOT_OWNER)
            for field in set(_OWNER_FIELD.findall(listing.leaves)) - self._sent_owners:
                self._add_owner(field, self._owners)
        self._pack((0, 0, 0, uid, gid, 0, _LEAVES), listing.path, listing.leaves)

    def directory(self, directory: Directory) -> None:
        """Make an empty directory."""
        self.enter(parent(directory.path))
        self._add(_DIRECTORY, basename(directory.path), directory)

    def attributes(self, directory: Directory) -> None:
        """Set the attributes of a directory that exists."""
        self._add(_ATTRIBUTES, directory.path, directory)
        self._entered = None

    def move(self, old: RelPath, new: RelPath) -> None:
        """Rename a directory with all below it."""
        self._add(_MOVE, old, other=new)
        self._entered = None

    def remove(self, path: RelPath) -> None:
        """Remove a name, with all below it."""
        self.enter(parent(path))
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
        self._pack((size, seconds, nanoseconds, uid, gid, mode, operation), name, other)

    def _add_owner(self, field: bytes, owners: OwnerIds) -> None:
        name = unescape(field[1:])
        number = owners.uid(name) if field[:1] == b"u" else owners.gid(name)
        self._sent_owners.add(field)
        self._pack((0, 0, 0, number, 0, 0, _OWNER), field[:1] + name, None)

    def _pack(
        self, numbers: tuple[int, int, int, int, int, int, int], name: bytes, other: bytes | None
    ) -> None:
        if other is None:
            record = _HEADER.pack(*numbers, len(name) + 1, 0, 0) + name + b"\0"
        else:
            lengths = len(name) + 1, len(other) + 1, 0
            record = b"%s%s\0%s\0" % (_HEADER.pack(*numbers, *lengths), name, other)
        self._parts.append(record)
        self.size += len(record)


class Maker:
    """A maker that carries out records below one directory, until it is closed."""

    def __init__(self, root: Path, building: Path | None = None) -> None:
        """Make entries in the folder `building` and rename them, or else in their places."""
        self._root = root
        folder = None if building is None else os.fsencode(building)
        with self._whole_paths():
            self._native = _native.Maker(os.fsencode(root), folder, privileged=os.geteuid() == 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Restore the times of the last entered directory."""
        with suppress(*(() if kind is None else (OSError,))), self._whole_paths():
            self._native.leave()

    def apply(self, records: bytes) -> None:
        """Carry out all records in order; an `OSError` names the path at which it stopped."""
        with self._whole_paths():
            self._native.apply(records)

    @property
    def unowned(self) -> int:
        """The number of entries whose owner could not be set."""
        return self._native.unowned

    @contextmanager
    def _whole_paths(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            path = self._root / os.fsdecode(error.filename or b"")
            raise OSError(error.errno, error.strerror, str(path)) from None
