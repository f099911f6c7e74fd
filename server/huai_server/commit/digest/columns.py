"""Digest columns for a stream of scanned directories.

Directories pass through in order, a window of them at a time, and their files in batches.  Files
that the cache does not know are read by several threads, soon after the scan has seen them: their
inodes are still in memory.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Event
from typing import NamedTuple, TypeAlias

from huai_schema.codec.escaping import unescape
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath, join
from huai_server.commit.digest.cache import (
    CachedDigest,
    CtimeAttributes,
    DigestCache,
    Entry,
    Identity,
)
from huai_server.commit.digest.hashing import ChangedError, Hashed, StoppedError, hash_file, look_at
from huai_server.scan.types import (
    CHANGED,
    IDENTITY,
    VOLATILE,
    Problem,
    ScannedDirectory,
    Unreadable,
    root_error,
)

_WINDOW = 4096
"""Directories or files that are held at a time; one huge directory comes in batches as well."""
_ABSENT = bytes(DIGEST_BYTES)

_Scanned: TypeAlias = ScannedDirectory | Unreadable


class _File(NamedTuple):
    path: RelPath
    identity: Identity
    attributes: CtimeAttributes


class DigestColumns:
    """Adds digests to what a scan yields; files that change while they are read become problems."""

    def __init__(
        self,
        root: Path,
        cache: DigestCache,
        threads: int,
        volatile: Callable[[RelPath], bool] = lambda _: False,
    ) -> None:
        """`root` is the module's tree; `threads` files are read at a time.

        A `volatile` file that changes while it is read gets no digest, and is no problem.
        """
        self._root_path = root
        self._cache = cache
        self._threads = threads
        self._volatile = volatile
        self._stopped = Event()
        self.hashed_files = 0
        self.hashed_bytes = 0

    def fill(self, scanned: Iterable[_Scanned]) -> Iterator[_Scanned]:
        """The same sequence, with digests in the listings."""
        try:
            self._root = os.open(self._root_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise root_error(self._root_path, error) from None
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="digest")
        try:
            for window in _windows(scanned):
                yield from self._fill_window(window)
        finally:
            self._stopped.set()  # else an interrupted run would read its largest files to the end
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
        """For each file its digest, or the reason why it has none."""
        while batch := list(islice(files, _WINDOW)):
            wanted: dict[Identity, _File] = {}
            for file in batch:
                wanted.setdefault(file.identity, file)  # the first name of several
            found = self._batch(wanted)
            for file in batch:
                yield file.path, found[file.identity]

    def _batch(self, wanted: dict[Identity, _File]) -> dict[Identity, bytes | str]:
        known = self._cache.lookup({item: file.attributes for item, file in wanted.items()})
        found: dict[Identity, bytes | str] = {
            item: each.digest for item, each in known.items() if each.same and each.complete
        }
        doubtful = [file for item, file in wanted.items() if item in known and item not in found]
        looked_at = self._pool.map(lambda file: self._confirm(file, known[file.identity]), doubtful)
        confirmed = dict(zip(doubtful, looked_at, strict=True))
        missing = [
            file
            for item, file in wanted.items()
            if item not in found and confirmed.get(file) is None
        ]
        results = dict(zip(missing, self._pool.map(self._hash, missing), strict=True))
        hashed = {file: it for file, it in results.items() if isinstance(it, Hashed)}
        good = {file: it for file, it in confirmed.items() if it is not None} | hashed
        self._cache.remember(
            Entry(file.identity, file.attributes, *result) for file, result in good.items()
        )
        self.hashed_files += len(hashed)
        self.hashed_bytes += sum(file.identity.size for file in hashed)
        found |= {file.identity: it for file, it in results.items() if isinstance(it, str)}
        return found | {file.identity: result.digest for file, result in good.items()}

    def _confirm(self, file: _File, known: CachedDigest) -> Hashed | None:
        """The known digest, if it is still valid; None: the file has to be read."""
        try:
            birth = look_at(self._root, file.path, file.identity)
        except (ChangedError, OSError):
            return Hashed(known.digest, None) if known.same else None
        if known.same or (birth is not None and birth == known.birth):
            return Hashed(known.digest, birth)
        return None

    def _hash(self, file: _File) -> Hashed | str:
        """The digest, or the reason why there is none."""
        try:
            return hash_file(self._root, file.path, file.identity, self._stopped.is_set)
        except ChangedError:
            return VOLATILE if self._volatile(file.path) else CHANGED
        except StoppedError:
            return "stopped"  # the run is over: nobody reads this
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
    for record in IDENTITY.iter_unpack(scanned.identities):
        *numbers, links, offset, mode, user, group = record
        name = listing.leaves[offset : listing.leaves.index(b"\t", offset)]
        raw_name = unescape(name) if b"\\" in name else name
        attributes = CtimeAttributes(mode, user, group, links, scanned.inode, raw_name)
        yield _File(join(listing.path, raw_name), Identity(*numbers), attributes)


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
            if found != VOLATILE:
                problems.append(Problem(path, found))
    listing = scanned.listing._replace(digests=bytes(column))
    return scanned._replace(listing=listing, problems=tuple(problems))
