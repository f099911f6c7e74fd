"""Instructions for the native maker, as bytes.

Pure.  Rule to keep: `_HEADER` and the numbers have to equal those of
`native/tree/src/attr_tree/record.rs`.
"""

import re
import struct

from huai_schema.codec.escaping import unescape
from huai_schema.codec.listing import Listing
from huai_schema.entries import ROOT_OWNER, Directory, File, Symlink
from huai_schema.paths import RelPath, basename
from huai_server.fallback.owners import OwnerIds

_HEADER = struct.Struct("=qqIIIIIIII")
_ENTER, _FILE, _SYMLINK, _LINK, _DIRECTORY, _REMOVE, _LEAVES = range(1, 8)
_ATTRIBUTES, _MOVE, _OWNER = range(8, 11)
_NANOSECONDS = 1_000_000_000
_LEAVE_OWNER = (1 << 32) - 1
_OWNER_FIELD = re.compile(rb"\t([ug][^\t\n]+)")
"""Nothing else in a line begins so: the other columns begin with digits, `-` or `>`."""


class Records:
    """Collects records until they are taken."""

    def __init__(self, owners: OwnerIds | None) -> None:
        """Numbers come from `owners`; None: entries keep the owner they are made with."""
        self._owners = owners
        self._parts: list[bytes] = []
        self._told: set[bytes] = set()
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

    def leaves(self, listing: Listing) -> None:
        """All files and symlinks of the directory entered, as their lines say."""
        uid = gid = _LEAVE_OWNER
        if self._owners is not None:
            uid, gid = self._owners.uid(ROOT_OWNER), self._owners.gid(ROOT_OWNER)
            for field in set(_OWNER_FIELD.findall(listing.leaves)) - self._told:
                self._tell(field, self._owners)
        self._pack((0, 0, 0, uid, gid, 0, _LEAVES), listing.path, listing.leaves)

    def directory(self, directory: Directory) -> None:
        """Make an empty directory in the one entered."""
        self._add(_DIRECTORY, basename(directory.path), directory)

    def attributes(self, directory: Directory) -> None:
        """Set the attributes of a directory that exists."""
        self._add(_ATTRIBUTES, directory.path, directory)

    def move(self, old: RelPath, new: RelPath) -> None:
        """Rename a directory with all below it."""
        self._add(_MOVE, old, other=new)

    def remove(self, path: RelPath) -> None:
        """Remove a name of the directory entered, with all below it."""
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
