"""A pack that comes in: kept aside, completed, then made visible as a whole or not at all.

Writes below `objects/pack` of a repository, under names that no git looks at until the last
two renames, the index last.  Rule: only one fetch works in a repository at a time, with the
module's lock held, so what an earlier one left may be removed.
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
    """As a context manager; what was not installed when it is left is removed."""

    def __init__(self, folder: Path) -> None:
        """`folder` is `objects/pack`; what a killed run left there goes away."""
        folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder)
        self._folder = folder
        # Without their suffixes: every git opens whatever ends in `.idx`.
        self._path = folder / f"{TEMPORARY}pack"
        self._index = folder / f"{TEMPORARY}idx"
        self._file = self._path.open("x+b", buffering=1 << 20)
        self._size = 0
        self._bases: dict[bytes, tuple[int, int]] = {}
        """Where the record of each begins, and its CRC-32."""
        self._ready: tuple[ResolvedPack, bytes] | None = None

    def __enter__(self) -> Self:
        """Nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is not finished."""
        with suppress(OSError):  # a full disk: what is still in memory is not wanted anyway
            self._file.close()
        self._path.unlink(missing_ok=True)
        self._index.unlink(missing_ok=True)

    def write(self, data: bytes) -> None:
        """The next bytes of the pack as it was sent."""
        self._size += len(data)
        if self._size > REPLY_BYTES:
            raise FormatError(f"a pack of more than {REPLY_BYTES} bytes", "the upstream's reply")
        self._file.write(data)

    def complete(self, objects: Packed, work: Work) -> ResolvedPack:
        """Check the pack, and add what its deltas need of what is here; nobody sees it yet."""
        self._file.flush()
        if not self._size:
            raise FormatError("a reply without a pack", "the upstream's reply")
        work.allow(self._size)
        pack = self._resolve(objects, work)
        if any(oid in pack for oid in pack.bases):
            raise FormatError("a delta against an object that comes later", "the upstream's reply")
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
        """Make the completed pack durable and visible; its path, or None if it brings no file."""
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
            raise MissingObjectError("a delta against an object that is not here", place)
        work.spend(pack.spent)
        return pack

    def _add_base(self, oid: bytes, objects: Packed, pack: ResolvedPack) -> None:
        """Add a base, with what it is made from, as far as that is not there yet.

        What came in `pack` may be made from the base itself: then that is added as a whole.
        """
        chain = objects.chain(oid)
        if not chain or any(each in pack for each, _ in chain):
            record = objects.record(oid)
            chain = [] if record is None else [(oid, record)]
        for each, record in chain:
            if each in self._bases:
                break
            self._append(each, record)

    def _append(self, oid: bytes, record: bytes) -> None:
        """Add an object that deltas need: a pack has to be readable on its own."""
        if not self._bases:
            # In the place of the checksum, which has been checked and is read no more.
            self._size -= CHECKSUM_BYTES
            self._file.seek(self._size)
        self._bases[oid] = self._size, zlib.crc32(record)
        self._size += self._file.write(record)

    def _seal(self, objects: int) -> bytes:
        """Put the new count into the header, and the new checksum at the end."""
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
        # Named after its bytes: a pack that is there already is replaced by itself.
        final = self._folder / f"pack-{name}.pack"
        new = not final.exists()
        self._path.rename(final)
        self._index.rename(final.with_suffix(".idx"))
        sync_folder(self._folder)
        return final if new else None
