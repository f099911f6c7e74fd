"""Writing git objects as one pack (git's own documentation: gitformat-pack).

One pack a commit: thousands of loose objects would cost an inode and an fsync each.
Objects are stored whole; deltas are the business of maintenance.  Nothing is visible to
git until `finish` has renamed the index into place, which is the last thing it does.
"""

import os
import struct
import tempfile
import zlib
from collections.abc import Container
from hashlib import sha1
from pathlib import Path
from typing import BinaryIO, NamedTuple

from huai_schema.gitobjects import Kind, object_id

TEMPORARY = "tmp_huai_"
"""Prefix of unfinished files; git too prunes what begins with `tmp_`."""
_KINDS: dict[Kind, int] = {"commit": 1, "tree": 2, "blob": 3}
_LARGE_OFFSET = 1 << 31
_COPY_BYTES = 1 << 20


class _Place(NamedTuple):
    offset: int
    crc: int


class PackWriter:
    """Collects objects that the repository does not have yet; an `ObjectWriter`."""

    def __init__(self, folder: Path, known: Container[bytes], *, level: int = 6) -> None:
        """`folder` is `objects/pack`; `known` are ids that need not be written again."""
        self._folder = folder
        self._known = known
        self._level = level
        self._places: dict[bytes, _Place] = {}
        handle, name = tempfile.mkstemp(prefix=TEMPORARY, suffix=".pack", dir=folder)
        self._path = Path(name)
        self._file: BinaryIO = os.fdopen(handle, "w+b", buffering=1 << 20)
        self._offset = self._file.write(_header(0))

    def __len__(self) -> int:
        """How many objects were written."""
        return len(self._places)

    def write(self, kind: Kind, data: bytes) -> bytes:
        """Add an object unless the repository has it; returns its id."""
        oid = object_id(kind, data)
        if oid in self._places or oid in self._known:
            return oid
        record = _object_header(_KINDS[kind], len(data)) + zlib.compress(data, self._level)
        self._places[oid] = _Place(self._offset, zlib.crc32(record))
        self._offset += self._file.write(record)
        return oid

    def finish(self) -> Path | None:
        """Make the pack durable and visible; None if there was nothing to write."""
        if not self._places:
            self.abort()
            return None
        checksum = self._seal()
        index = _index(self._places, checksum)
        name = sha1(b"".join(sorted(self._places)), usedforsecurity=False).hexdigest()
        final = self._folder / f"pack-{name}.pack"
        self._path.chmod(0o444)
        self._path.rename(final)
        temporary = self._path.with_suffix(".idx")
        with temporary.open("wb") as file:
            file.write(index)
            _sync(file)
        temporary.chmod(0o444)
        temporary.rename(final.with_suffix(".idx"))
        sync_folder(self._folder)
        return final

    def abort(self) -> None:
        """Drop everything."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _seal(self) -> bytes:
        """Put the count into the header and the checksum of everything at the end."""
        self._file.seek(0)
        self._file.write(_header(len(self._places)))
        self._file.seek(0)
        digest = sha1(usedforsecurity=False)
        while chunk := self._file.read(_COPY_BYTES):
            digest.update(chunk)
        self._file.write(digest.digest())
        _sync(self._file)
        self._file.close()
        return digest.digest()


def remove_unfinished(folder: Path) -> None:
    """Drop what a killed run left; call it only while holding the module's lock."""
    for path in folder.glob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _header(objects: int) -> bytes:
    return struct.pack(">4sII", b"PACK", 2, objects)


def _object_header(kind: int, size: int) -> bytes:
    byte = kind << 4 | size & 15
    size >>= 4
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    header.append(byte)
    return bytes(header)


def _index(places: dict[bytes, _Place], checksum: bytes) -> bytes:
    """A version 2 pack index."""
    oids = sorted(places)
    fanout = [0] * 256
    for oid in oids:
        fanout[oid[0]] += 1
    for byte in range(1, 256):
        fanout[byte] += fanout[byte - 1]
    offsets, large = [], []
    for oid in oids:
        offset = places[oid].offset
        if offset >= _LARGE_OFFSET:
            large.append(offset)
            offset = _LARGE_OFFSET | len(large) - 1
        offsets.append(offset)
    body = b"".join(
        (
            b"\xfftOc\0\0\0\2",
            struct.pack(">256I", *fanout),
            *oids,
            struct.pack(f">{len(oids)}I", *(places[oid].crc for oid in oids)),
            struct.pack(f">{len(offsets)}I", *offsets),
            struct.pack(f">{len(large)}Q", *large),
            checksum,
        )
    )
    return body + sha1(body, usedforsecurity=False).digest()
