"""Digest columns for a stream of scanned directories.

Directories pass through in order, a window of them at a time, and their files in batches:
what the cache does not know is read in parallel, while the scan has just brought it near.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Event
from typing import NamedTuple, TypeAlias

from huai_schema.escaping import unescape
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath, join
from huai_server.digest.cache import DigestCache, Identity
from huai_server.digest.hashing import ChangedError, StoppedError, hash_file
from huai_server.scan.types import IDENTITY, Problem, ScannedDirectory, Unreadable

_WINDOW = 4096
"""Directories or files that are held at a time; one huge directory comes in batches as well."""
_ABSENT = bytes(DIGEST_BYTES)

_Scanned: TypeAlias = ScannedDirectory | Unreadable


class _File(NamedTuple):
    path: RelPath
    identity: Identity


class DigestColumns:
    """Adds digests to what a scan yields; files that change under it become problems."""

    def __init__(self, root: Path, cache: DigestCache, threads: int) -> None:
        """`root` is the module's tree; `threads` files are read at a time."""
        self._root_path = root
        self._cache = cache
        self._threads = threads
        self._stopped = Event()
        self.hashed_files = 0
        self.hashed_bytes = 0

    def fill(self, scanned: Iterable[_Scanned]) -> Iterator[_Scanned]:
        """The same sequence, with digests in the listings."""
        self._root = os.open(self._root_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="digest")
        try:
            for window in _windows(scanned):
                yield from self._fill_window(window)
        finally:
            self._stopped.set()  # else a run that is cut would read its largest files to the end
            self._pool.shutdown(cancel_futures=True)
            os.close(self._root)

    def _fill_window(self, window: list[_Scanned]) -> Iterator[_Scanned]:
        directories = (item for item in window if isinstance(item, ScannedDirectory))
        digests = self._digests(file for item in directories for file in _files(item))
        for item in window:
            if isinstance(item, ScannedDirectory) and item.identities:
                yield _with_digests(item, islice(digests, len(item.identities) // IDENTITY.size))
            else:
                yield item

    def _digests(self, files: Iterator[_File]) -> Iterator[tuple[RelPath, bytes | str]]:
        """For each file its digest, or why there is none."""
        while batch := list(islice(files, _WINDOW)):
            found = self._batch({file.identity: file.path for file in batch})
            for file in batch:
                yield file.path, found[file.identity]

    def _batch(self, wanted: dict[Identity, RelPath]) -> dict[Identity, bytes | str]:
        found: dict[Identity, bytes | str] = {**self._cache.lookup(wanted)}
        missing = [_File(path, item) for item, path in wanted.items() if item not in found]
        results = zip(missing, self._pool.map(self._hash, missing), strict=True)
        fresh = {file.identity: result for file, result in results}
        digests = {item: result for item, result in fresh.items() if isinstance(result, bytes)}
        self._cache.remember(digests)
        self.hashed_files += len(digests)
        self.hashed_bytes += sum(item.size for item in digests)
        return found | fresh

    def _hash(self, file: _File) -> bytes | str:
        """The digest, or why there is none."""
        try:
            return hash_file(self._root, file.path, file.identity, self._stopped.is_set)
        except ChangedError:
            return "changed while it was read"
        except StoppedError:
            return "stopped"  # nobody looks at it
        except OSError as error:
            return os.strerror(error.errno or 0)


def _windows(scanned: Iterable[_Scanned]) -> Iterator[list[_Scanned]]:
    window: list[_Scanned] = []
    size = 0
    for item in scanned:
        window.append(item)
        size += 1
        if isinstance(item, ScannedDirectory):
            size += len(item.identities) // IDENTITY.size
        if size >= _WINDOW:
            yield window
            window, size = [], 0
    yield window


def _files(scanned: ScannedDirectory) -> Iterator[_File]:
    """The regular files of a directory, in the order of its lines."""
    listing = scanned.listing
    for *numbers, _, offset in IDENTITY.iter_unpack(scanned.identities):
        name = listing.leaves[offset : listing.leaves.index(b"\t", offset)]
        raw_name = unescape(name) if b"\\" in name else name
        yield _File(join(listing.path, raw_name), Identity(*numbers))


def _with_digests(
    scanned: ScannedDirectory, digests: Iterable[tuple[RelPath, bytes | str]]
) -> ScannedDirectory:
    column = bytearray()
    problems = list(scanned.problems)
    for path, found in digests:
        if isinstance(found, bytes):
            column += found
        else:
            column += _ABSENT
            problems.append(Problem(path, found))
    listing = scanned.listing._replace(digests=bytes(column))
    return scanned._replace(listing=listing, problems=tuple(problems))
