"""The engine's maker of sparse files, and its instructions as bytes.

Rule to keep: `_HEADER` and the numbers have to equal those of
`native/tree/src/attr_tree/record.rs`.
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
"""Nothing else in a line begins so: the other columns begin with digits, `-` or `>`."""


class Records:
    """Collects records until they are taken; a name's directory is entered when need be."""

    def __init__(self, owners: OwnerIds | None) -> None:
        """Numbers come from `owners`; None: entries keep the owner they are made with."""
        self._owners = owners
        self._parts: list[bytes] = []
        self._told: set[bytes] = set()
        self._entered: RelPath | None = None
        self.size = 0
        """Bytes that wait to be taken."""

    def take(self) -> bytes:
        """All records since the last time."""
        taken = b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        return taken

    def enter(self, directory: RelPath) -> None:
        """The records that follow are about names in this directory."""
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
        """Make all files and symlinks of a directory, as their lines say."""
        self.enter(listing.path)
        uid = gid = _LEAVE_OWNER
        if self._owners is not None:
            uid, gid = self._owners.uid(ROOT_OWNER), self._owners.gid(ROOT_OWNER)
            for field in set(_OWNER_FIELD.findall(listing.leaves)) - self._told:
                self._tell(field, self._owners)
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

    def _tell(self, field: bytes, owners: OwnerIds) -> None:
        name = unescape(field[1:])
        number = owners.uid(name) if field[:1] == b"u" else owners.gid(name)
        self._told.add(field)
        self._pack((0, 0, 0, number, 0, 0, _OWNER), field, None)

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
    """Carries out records below one directory, until it is closed."""

    def __init__(self, root: Path, building: Path | None = None) -> None:
        """With a `building` folder entries are renamed to their places; else made there."""
        self._root = root
        folder = None if building is None else os.fsencode(building)
        with self._whole_paths():
            self._native = _native.Maker(os.fsencode(root), folder, privileged=os.geteuid() == 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """The last directory that was entered gets its times back."""
        with suppress(*(() if kind is None else (OSError,))), self._whole_paths():
            self._native.leave()

    def apply(self, records: bytes) -> None:
        """Do all of it in order; an `OSError` names the path at which it ended."""
        with self._whole_paths():
            self._native.apply(records)

    @property
    def unowned(self) -> int:
        """How many entries could not be given their owner."""
        return self._native.unowned

    @contextmanager
    def _whole_paths(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            path = self._root / os.fsdecode(error.filename or b"")
            raise OSError(error.errno, error.strerror, str(path)) from None
