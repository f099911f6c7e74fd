"""Journals of files that are changed in place: ROOT/modules/NAME/patches/HASH-OF-PATH.

They are instructions, so they are in the client's state and never in a tree, where any program that
adds files could write them.  Each names its tree, and identifies its files by inode.  A journal
that is damaged or does not fit is dropped: its file got another time before its content was
touched, so the next sync compares it by digest.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from huai_program.durable import replace_file, sync_folder
from huai_schema.errors import FormatError
from huai_schema.paths import RelPath, rel_path


def hashed(path: bytes) -> bytes:
    """Return a name for `path` in a flat folder, independent of the shape of the tree."""
    return blake2b(path, digest_size=20).hexdigest().encode()


_VERSION = 1
_CHECKSUM = 16
_NEW = ".new"
_Offset = Annotated[int, msgspec.Meta(ge=0)]


class PatchState(NamedTuple):
    """The identity of a patch, which no other file shares."""

    inode: int
    size: int
    mtime: int
    """Nanoseconds, as `ctime`."""
    ctime: int

    @classmethod
    def of(cls, status: os.stat_result) -> "PatchState":
        """Return the identity of the file with this status."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Journal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The change in progress of one file of the tree."""

    dest: bytes
    """The top of the tree, as in client.toml."""
    path: bytes
    inode: int
    """The inode of the file that is changed, on the file system of `dest`."""
    size: _Offset
    """Its size before the change."""
    patch: PatchState
    ranges: list[tuple[_Offset, _Offset]]
    """Begin and end of each changed range."""
    version: int = _VERSION

    def is_of(self, target: os.stat_result, dest: os.stat_result) -> bool:
        """Return True if `target` is the file, under this name only, in the tree `dest`."""
        return (
            stat.S_ISREG(target.st_mode)
            and (target.st_dev, target.st_ino, target.st_nlink) == (dest.st_dev, self.inode, 1)
            and target.st_size in (self.size, self.patch.size)
        )

    def is_sound(self) -> bool:
        """Return True if its version and its ranges are valid."""
        end = 0
        for begin, after in self.ranges:
            if not end <= begin < after <= self.patch.size:
                return False
            end = after
        return self.version == _VERSION


class Journals:
    """The journals of one module: for each file being changed in place, how to finish that."""

    def __init__(self, folder: Path, dest: Path) -> None:
        """`dest` is the top of the module's tree.  The caller holds the module's lock."""
        self._folder = folder
        self.dest = os.fsencode(dest)

    def names(self) -> frozenset[bytes]:
        """Return the names of the patches that are being applied."""
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        return frozenset(os.fsencode(name) for name in names if not name.endswith(_NEW))

    def write(self, journal: Journal) -> None:
        """Replace the journal of a file durably; raises `OSError` if that fails."""
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o700)
            sync_folder(self._folder.parent)
        path = self._path(hashed(journal.path))
        data = msgspec.msgpack.encode(journal)
        replace_file(path, _checksum(data) + data, path.with_suffix(_NEW), permissions=0o600)

    def read_all(self) -> Iterator[tuple[bytes, RelPath, Journal | None]]:
        """Yield name, path and journal of each file; empty path and None if damaged or foreign."""
        for name in sorted(self.names()):
            journal = self._load(name)
            path = None if journal is None else _valid_path(journal.path)
            if journal and path and journal.dest == self.dest and hashed(path) == name:
                yield name, path, journal
            else:
                yield name, RelPath(b""), None

    def drop(self, name: bytes) -> None:
        """Delete a journal durably, if it exists."""
        with suppress(FileNotFoundError):
            self._path(name).unlink()
            sync_folder(self._folder)

    def _path(self, name: bytes) -> Path:
        return self._folder / os.fsdecode(name)

    def _load(self, name: bytes) -> Journal | None:
        """Read a journal; None if it is damaged."""
        with open(self._path(name), "rb", opener=_open_regular) as file:
            data = file.read()
        checksum, data = data[:_CHECKSUM], data[_CHECKSUM:]
        if checksum != _checksum(data):
            return None
        try:
            journal = msgspec.msgpack.decode(data, type=Journal)
        except (msgspec.DecodeError, UnicodeError):
            return None
        return journal if journal.is_sound() else None


def _valid_path(path: bytes) -> RelPath | None:
    """Return the path; None if it is invalid or the top."""
    try:
        return rel_path(path) or None
    except (FormatError, UnicodeError):
        return None


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_CHECKSUM).digest()


def _open_regular(path: str, flags: int) -> int:
    """Open a file without following a symlink or waiting for the other end of a FIFO."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
