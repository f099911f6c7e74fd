"""Digest columns for a stream of scanned directories.

Directories pass through in order, a window of them at a time, and their files in batches.  What is
known already is the engine's to say.  Other files are read by several threads, soon after the scan
has seen them: their inodes are still in memory.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import NamedTuple, TypeAlias

from huai_native._native import Digests
from huai_schema.codec.escaping import unescape
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath, join
from huai_server.commit.digest.hashing import (
    ChangedError,
    Hashed,
    Identity,
    StoppedError,
    hash_file,
    look_at,
)
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

_Scanned: TypeAlias = ScannedDirectory | Unreadable
_Part: TypeAlias = tuple[ScannedDirectory, bytes]
"""A directory and some of its records."""


class DigestsError(HuaiError):
    """The digests of earlier commits cannot be read, or new ones not be kept."""

    exit_code = ExitCode.FILE_IO


class _File(NamedTuple):
    path: RelPath
    identity: Identity
    known: Hashed | None
    """What holds if the time of birth is this one."""


class DigestColumns:
    """Adds digests to what a scan yields; files that change while they are read become problems."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        threads: int,
        volatile: Callable[[RelPath], bool] = lambda _: False,
    ) -> None:
        """`root` is the module's tree; `threads` files are read at a time.

        Digests are kept in `folder`.  A `volatile` file that changes while it is read gets no
        digest, and is no problem.
        """
        self._root_path = root
        self._folder = folder
        self._threads = threads
        self._volatile = volatile
        self._stopped = Event()
        self.hashed_files = 0
        self.hashed_bytes = 0

    def fill(self, scanned: Iterable[_Scanned]) -> Iterator[_Scanned]:
        """The same sequence, with digests in the listings."""
        with self._keeping():
            self._digests = Digests(os.fsencode(self._folder))
        try:
            self._root = os.open(self._root_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise root_error(self._root_path, error) from None
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="digest")
        try:
            for window in _windows(scanned):
                yield from self._fill_window(window)
            with self._keeping():
                self._digests.finish()
        finally:
            self._stopped.set()  # else an interrupted run would read its largest files to the end
            self._pool.shutdown(cancel_futures=True)
            os.close(self._root)
            with suppress(OSError):  # what is lost is read again
                self._digests.flush()

    def _fill_window(self, window: list[_Scanned]) -> Iterator[_Scanned]:
        found = self._columns(_parts(window))
        for item in window:
            if not isinstance(item, ScannedDirectory) or not item.identities:
                yield item
                continue
            column = b""
            problems = list(item.problems)
            while len(column) < len(item.identities) // IDENTITY.size * DIGEST_BYTES:
                more, reasons = next(found)
                column = column + more if column else more
                problems += reasons
            listing = item.listing._replace(digests=column)
            yield item._replace(listing=listing, problems=tuple(problems))

    def _columns(self, parts: Iterable[_Part]) -> Iterator[tuple[bytes, list[Problem]]]:
        """For each part its digests, and which files have none."""
        for batch in _batches(parts):
            with self._keeping():
                doubts = self._digests.look_up(
                    [(item.listing.leaves, records, item.inode) for item, records in batch]
                )
            files = [(part, _file(*batch[part], number, known)) for part, number, known in doubts]
            results = self._find_out([file for _, file in files])
            with self._keeping():
                columns = self._digests.settle(
                    [
                        (found.birth, found.digest) if isinstance(found, Hashed) else None
                        for found in results
                    ]
                )
            problems: list[list[Problem]] = [[] for _ in batch]
            for (part, file), found in zip(files, results, strict=True):
                if isinstance(found, str) and found != VOLATILE:
                    problems[part].append(Problem(file.path, found))
            yield from zip(columns, problems, strict=True)

    def _find_out(self, files: list[_File]) -> list[Hashed | str]:
        """For each file its digest, or the reason why it has none."""
        wanted: dict[Identity, _File] = {}
        for file in files:
            wanted.setdefault(file.identity, file)  # the first name of several
        found = dict(zip(wanted, self._pool.map(self._digest, wanted.values()), strict=True))
        read = [item for item, result in found.items() if result is not wanted[item].known]
        good = [item for item in read if isinstance(found[item], Hashed)]
        self.hashed_files += len(good)
        self.hashed_bytes += sum(item.size for item in good)
        return [found[file.identity] for file in files]

    def _digest(self, file: _File) -> Hashed | str:
        if file.known is not None:
            with suppress(ChangedError, OSError):
                if look_at(self._root, file.path, file.identity) == file.known.birth:
                    return file.known
        try:
            return hash_file(self._root, file.path, file.identity, self._stopped.is_set)
        except ChangedError:
            return VOLATILE if self._volatile(file.path) else CHANGED
        except StoppedError:
            return "stopped"  # the run is over: nobody reads this
        except OSError as error:
            return os.strerror(error.errno or 0)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DigestsError(
                f"{self._folder}: the digests there cannot be used: {error.strerror}",
                hint="make room on the file system of this folder, and check that it can be"
                " written",
            ) from error


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


def _parts(window: Iterable[_Scanned]) -> Iterator[_Part]:
    """The directories that hold files, large ones piece by piece."""
    for item in window:
        if isinstance(item, ScannedDirectory):
            for start in range(0, len(item.identities), _WINDOW * IDENTITY.size):
                yield item, item.identities[start : start + _WINDOW * IDENTITY.size]


def _batches(parts: Iterable[_Part]) -> Iterator[list[_Part]]:
    batch: list[_Part] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += len(part[1]) // IDENTITY.size
        if size >= _WINDOW:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _file(
    item: ScannedDirectory, records: bytes, number: int, known: tuple[int, bytes] | None
) -> _File:
    """One of the files of a part."""
    *numbers, _, offset, _, _, _ = IDENTITY.unpack_from(records, number * IDENTITY.size)
    leaves = item.listing.leaves
    name = unescape(leaves[offset : leaves.index(b"\t", offset)])
    hashed = Hashed(known[1], known[0]) if known else None
    return _File(join(item.listing.path, name), Identity(*numbers), hashed)
