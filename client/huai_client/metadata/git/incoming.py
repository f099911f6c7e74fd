"""A pack that is received: completed under a temporary name, then made visible in one step.

Writes below `objects/pack` of a repository, under names that git ignores until the last
two renames, the index last.  Rule: only one fetch works in a repository at a time, with the
module's lock held, so the files that an earlier one left may be removed.
"""

import os
import zlib
from contextlib import suppress
from hashlib import sha1
from pathlib import Path
from typing import Self

from huai_client.metadata.git.limits import HELD_BYTES, NAMING_BYTES, REPLY_BYTES, Work
from huai_client.metadata.git.objects import MissingObjectError, Packed
from huai_native._native import ResolvedPack, resolve_pack
from huai_program.durable import sync_folder
from huai_program.packs import TEMPORARY, remove_unfinished
from huai_schema.errors import FormatError
from huai_schema.git.packfile import CHECKSUM_BYTES, pack_header

_HASH_BYTES = 1 << 20
_MODE = 0o444


class IncomingPack:
    """A pack being received, as a context manager; it is removed unless it was installed."""

    def __init__(self, folder: Path) -> None:
        """`folder` is `objects/pack`; files that a killed run left there are removed."""
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder)
        self._folder = folder
        # Without suffixes: git opens every file that ends in `.idx`.
        self._path = folder / f"{TEMPORARY}pack"
        self._index = folder / f"{TEMPORARY}idx"
        self._file = self._path.open("x+b", buffering=1 << 20)
        self._size = 0
        self._bases: dict[bytes, tuple[int, int]] = {}
        """Offset and CRC-32 of the record of each base."""
        self._ready: tuple[ResolvedPack, bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove a pack that was not installed."""
        with suppress(OSError):  # a full disk: the buffered rest is not needed
            self._file.close()
        self._path.unlink(missing_ok=True)
        self._index.unlink(missing_ok=True)

    def write(self, data: bytes) -> None:
        """Write the next bytes of the pack, as received."""
        self._size += len(data)
        if self._size > REPLY_BYTES:
            raise FormatError(f"a pack of more than {REPLY_BYTES} bytes", "the upstream's reply")
        self._file.write(data)

    def complete(self, objects: Packed, work: Work) -> ResolvedPack:
        """Check the pack, and add the local bases of its deltas; it stays invisible."""
        self._file.flush()
        if not self._size:
            raise FormatError("a reply without a pack", "the upstream's reply")
        work.allow(self._size)
        pack = self._resolve(objects, work)
        if any(oid in pack for oid in pack.bases):
            raise FormatError("a delta against a later object", "the upstream's reply")
        for oid in pack.bases:
            self._add_base(oid, objects, pack)
        if self._bases:
            checksum = self._seal(len(pack) + len(self._bases))
        else:
            self._file.seek(-CHECKSUM_BYTES, os.SEEK_END)
            checksum = self._file.read(CHECKSUM_BYTES)
        self._ready = pack, checksum
        return pack

    def install(self) -> Path | None:
        """Make the completed pack durable and visible; return its path if it adds a file."""
        if self._ready is None:
            raise ValueError("install before complete")
        pack, checksum = self._ready
        if not len(pack):
            return None
        bases = [(oid, *place) for oid, place in self._bases.items()]
        return self._publish(pack.index(bases, checksum), checksum.hex())

    def _resolve(self, objects: Packed, work: Work) -> ResolvedPack:
        work.check()
        room = HELD_BYTES, NAMING_BYTES
        path, packs = os.fsencode(self._path), getattr(objects, "packs", None)
        pack = resolve_pack(path, objects.find, work.check, work=work.left, room=room, packs=packs)
        if isinstance(pack, int):
            place = f"byte {pack} of the pack"
            raise MissingObjectError("a delta against a missing object", place)
        work.spend(pack.spent)
        return pack

    def _add_base(self, oid: bytes, objects: Packed, pack: ResolvedPack) -> None:
        """Add a base and its own bases, as far as they are not there yet.

        An object of `pack` may be a base of this base: then it is added as a whole.
        """
        chain = objects.chain(oid)
        if not chain or any(base in pack for base, _ in chain):
            record = objects.record(oid)
            chain = [] if record is None else [(oid, record)]
        for base, record in chain:
            if base in self._bases:
                break
            self._append(base, record)

    def _append(self, oid: bytes, record: bytes) -> None:
        """Add a base of deltas: a pack must be readable on its own."""
        if not self._bases:
            # In the place of the checksum, which was checked and is not needed any more.
            self._size -= CHECKSUM_BYTES
            self._file.seek(self._size)
        self._bases[oid] = self._size, zlib.crc32(record)
        self._size += self._file.write(record)

    def _seal(self, objects: int) -> bytes:
        """Write the new number of objects into the header, and the new checksum at the end."""
        self._file.seek(0)
        self._file.write(pack_header(objects))
        self._file.seek(0)
        digest, left = sha1(usedforsecurity=False), self._size
        while left:
            chunk = self._file.read(min(left, _HASH_BYTES))
            digest.update(chunk)
            left -= len(chunk)
        self._file.seek(self._size)
        self._file.write(digest.digest())
        self._file.truncate()
        return digest.digest()

    def _publish(self, index: bytes, name: str) -> Path | None:
        self._file.flush()
        os.fchmod(self._file.fileno(), _MODE)
        os.fsync(self._file.fileno())
        with self._index.open("xb") as file:
            file.write(index)
            file.flush()
            os.fchmod(file.fileno(), _MODE)
            os.fsync(file.fileno())
        # Named after its bytes: an existing pack of this name is replaced by itself.
        final = self._folder / f"pack-{name}.pack"
        new = not final.exists()
        self._path.rename(final)
        self._index.rename(final.with_suffix(".idx"))
        sync_folder(self._folder)
        return final if new else None
