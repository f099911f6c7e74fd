"""The block indices of large files (FORMAT.md, "Block indices"): files to be served.

`blocks/AB/DIGEST` in the repository, the digest in hex and AB its first two digits.  They are
written before the commit that names the digest.  One that no commit names any more stays for
downstreams with the old file, and is removed later.

Rule: a file with its final name is complete and durable, and is never written again.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from huai_native._native import BlockIndex
from huai_program.durable import replace_file
from huai_program.packs import TEMPORARY
from huai_schema.layout.snapshot import Snapshot
from huai_schema.limits import DIGEST_BYTES

_FOLDER = "blocks"
_LOOKED = "looked"
"""A file whose time is that of the last search for outdated indices."""
_DAY = 86_400
_KEPT = 30 * _DAY
"""Seconds that an index stays when no commit names it any more."""
_MODE = 0o444


def block_index_path(repository: Path, digest: bytes) -> Path:
    """Return the path of the index of the file with this digest."""
    name = digest.hex()
    return repository / _FOLDER / name[:2] / name


class BlockIndices:
    """The block indices of one repository."""

    def __init__(self, repository: Path) -> None:
        """`repository` is a path, which must exist only to write.

        The caller of `prune` holds the module's lock; several processes may write at a time.
        """
        self._repository = repository
        self._folder = repository / _FOLDER

    def write(self, index: BlockIndex) -> None:
        """Store the block index of a large file, durably, unless it is stored; raises `OSError`."""
        path = block_index_path(self._repository, index.digest())
        if path.exists():
            return
        for folder in (self._folder, path.parent):
            folder.mkdir(exist_ok=True)
        temporary = self._folder / f"{TEMPORARY}{os.urandom(8).hex()}"
        replace_file(path, index.encode(), temporary, permissions=_MODE)

    def prune(self, snapshot: Snapshot, now: float) -> None:
        """Delete indices of files that were in no commit for 30 days; at most once a day.

        Also deletes unfinished files that are a day old.
        `snapshot` is the newest commit's.  The indices of its files get the time `now`, in seconds
        since the epoch, by which later calls know when a file was last in a commit.
        """
        looked = self._folder / _LOOKED
        with suppress(FileNotFoundError):
            if 0 <= now - looked.stat().st_mtime < _DAY:
                return
        for unfinished in self._folder.glob(f"{TEMPORARY}*"):
            with suppress(FileNotFoundError):  # its process has renamed it
                if now - unfinished.stat().st_mtime > _DAY:
                    unfinished.unlink()
        stored = self.stored()
        if not stored:
            return
        for digest in _file_digests(snapshot):
            path = stored.pop(digest, None)
            if path is not None:
                os.utime(path, (now, now))
        for path in stored.values():
            if now - path.stat().st_mtime > _KEPT:
                path.unlink()
        looked.touch()
        os.utime(looked, (now, now))

    def stored(self) -> dict[bytes, Path]:
        """Return the path of each index, by the digest of the large file; skip other files."""
        paths: dict[bytes, Path] = {}
        for path in self._folder.glob("??/*"):
            with suppress(ValueError):
                paths[bytes.fromhex(path.name)] = path
        return paths


def _file_digests(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the digest of each file of the snapshot; zeros for a file without one."""
    for listing in snapshot.listings():
        column = listing.digests
        for at in range(0, len(column), DIGEST_BYTES):
            yield column[at : at + DIGEST_BYTES]
