"""Digest columns for a stream of scanned directories.

Directories pass through in order, a window of them at a time: what the cache does not know
is read in parallel, while the scan has just brought it near.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from huai_schema.escaping import unescape
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath, join
from huai_server.digest.cache import DigestCache, Identity
from huai_server.digest.hashing import ChangedError, hash_file
from huai_server.scan.types import IDENTITY, Problem, ScannedDirectory, Unreadable

_WINDOW_FILES = 4096
_ABSENT = bytes(DIGEST_BYTES)


class _File(NamedTuple):
    path: RelPath
    identity: Identity


class DigestColumns:
    """Adds digests to what a scan yields; files that change under it become problems."""

    def __init__(self, root: Path, cache: DigestCache, threads: int) -> None:
        """`root` is the module's tree; `threads` files are read at a time."""
        self._root = root
        self._cache = cache
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="digest")
        self.hashed_files = 0
        self.hashed_bytes = 0

    def fill(
        self, scanned: Iterable[ScannedDirectory | Unreadable]
    ) -> Iterator[ScannedDirectory | Unreadable]:
        """The same sequence, with digests in the listings."""
        window: list[ScannedDirectory | Unreadable] = []
        files = 0
        try:
            for item in scanned:
                window.append(item)
                if isinstance(item, ScannedDirectory):
                    files += len(item.identities) // IDENTITY.size
                if files >= _WINDOW_FILES:
                    yield from self._fill_window(window)
                    window, files = [], 0
            yield from self._fill_window(window)
        finally:
            self._pool.shutdown(cancel_futures=True)

    def _fill_window(
        self, window: list[ScannedDirectory | Unreadable]
    ) -> Iterator[ScannedDirectory | Unreadable]:
        by_directory = [
            _files(item) if isinstance(item, ScannedDirectory) else [] for item in window
        ]
        by_identity = {file.identity: file.path for file in chain(*by_directory)}
        known = self._cache.lookup(by_identity)
        missing = [
            _File(path, identity) for identity, path in by_identity.items() if identity not in known
        ]
        results = dict(zip(missing, self._pool.map(self._hash, missing), strict=True))
        fresh = {
            file.identity: found for file, found in results.items() if isinstance(found, bytes)
        }
        self._cache.remember(fresh)
        self.hashed_files += len(fresh)
        self.hashed_bytes += sum(identity.size for identity in fresh)
        failed = {file.identity: found for file, found in results.items() if isinstance(found, str)}
        known |= fresh
        for item, files in zip(window, by_directory, strict=True):
            if isinstance(item, ScannedDirectory) and files:
                yield _with_digests(item, files, known, failed)
            else:
                yield item

    def _hash(self, file: _File) -> bytes | str:
        """The digest, or why there is none."""
        try:
            return hash_file(self._root, file.path, file.identity)
        except ChangedError:
            return "changed while it was read"
        except OSError as error:
            return os.strerror(error.errno or 0)


def _files(scanned: ScannedDirectory) -> list[_File]:
    """The regular files of a directory, in the order of its lines."""
    listing = scanned.listing
    found = []
    for *numbers, _, offset in IDENTITY.iter_unpack(scanned.identities):
        name = listing.leaves[offset : listing.leaves.index(b"\t", offset)]
        raw_name = unescape(name) if b"\\" in name else name
        found.append(_File(join(listing.path, raw_name), Identity(*numbers)))
    return found


def _with_digests(
    scanned: ScannedDirectory,
    files: list[_File],
    known: dict[Identity, bytes],
    failed: dict[Identity, str],
) -> ScannedDirectory:
    column = b"".join(known.get(file.identity, _ABSENT) for file in files)
    problems = tuple(
        Problem(file.path, failed[file.identity]) for file in files if file.identity in failed
    )
    return scanned._replace(
        listing=scanned.listing._replace(digests=column), problems=scanned.problems + problems
    )
