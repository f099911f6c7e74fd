"""Writing git objects as one pack (git's own documentation: gitformat-pack).

One pack a commit: thousands of loose objects would cost an inode and an fsync each.  Objects are
stored whole; deltas are left to git's maintenance.  Git sees nothing of the pack until `finish`
renames the index into place, as its last step.
"""

import os
import tempfile
import zlib
from collections.abc import Container
from contextlib import suppress
from hashlib import sha1
from pathlib import Path
from typing import BinaryIO

from huai_native._native import pack_index
from huai_schema.git.objects import Kind, object_id
from huai_schema.git.packfile import KIND_CODES, object_header, pack_header
from huai_schema.program.durable import sync_folder
from huai_schema.program.packs import TEMPORARY

_COPY_BYTES = 1 << 20


class PackWriter:
    """Collects objects that the repository does not have yet; an `ObjectWriter`."""

    def __init__(self, folder: Path, known: Container[bytes], *, level: int = 6) -> None:
        """`folder` is `objects/pack`; `known` are ids that need not be written again."""
        self._folder = folder
        self._known = known
        self._level = level
        self._places: dict[bytes, tuple[int, int]] = {}
        """Where each record begins, and its CRC-32."""
        # The temporary names do not end in .pack and .idx: git reads whatever does.
        handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
        self._path = Path(name)
        self._index_path = Path(f"{name}.index")
        self._file: BinaryIO = os.fdopen(handle, "w+b", buffering=1 << 20)
        self._offset = self._file.write(pack_header(0))

    def __len__(self) -> int:
        """How many objects were written."""
        return len(self._places)

    def write(self, kind: Kind, data: bytes) -> bytes:
        """Add an object unless the repository has it; returns its id."""
        oid = object_id(kind, data)
        if oid in self._places or oid in self._known:
            return oid
        record = object_header(KIND_CODES[kind], len(data)) + zlib.compress(data, self._level)
        self._places[oid] = self._offset, zlib.crc32(record)
        self._offset += self._file.write(record)
        return oid

    def finish(self) -> Path | None:
        """Make the pack durable and visible; None if there was nothing to write."""
        if not self._places:
            self.abort()
            return None
        checksum = self._seal()
        with self._index_path.open("wb") as file:
            places = [(oid, *place) for oid, place in self._places.items()]
            file.write(pack_index(places, checksum))
            _sync(file)
        # A pack is named after its bytes, so it can only replace an equal one.
        final = self._folder / f"pack-{checksum.hex()}.pack"
        self._path.chmod(0o444)
        self._index_path.chmod(0o444)
        self._path.rename(final)
        self._index_path.rename(final.with_suffix(".idx"))
        sync_folder(self._folder)
        return final

    def abort(self) -> None:
        """Drop everything; safe to call at any time."""
        with suppress(OSError):  # a full disk: closing flushes what is in memory, and fails
            self._file.close()
        self._path.unlink(missing_ok=True)
        self._index_path.unlink(missing_ok=True)

    def _seal(self) -> bytes:
        """Put the count into the header and the checksum of everything at the end."""
        self._file.seek(0)
        self._file.write(pack_header(len(self._places)))
        self._file.seek(0)
        digest = sha1(usedforsecurity=False)
        while chunk := self._file.read(_COPY_BYTES):
            digest.update(chunk)
        self._file.write(digest.digest())
        _sync(self._file)
        self._file.close()
        return digest.digest()


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
