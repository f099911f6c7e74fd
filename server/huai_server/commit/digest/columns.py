"""Digest columns for a stream of scanned directories.

Directories pass through in order, a window of them at a time.  What is known already is the
engine's to say.  It reads the other files as well, soon after the scan has seen them: their inodes
are still in memory.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from huai_native._native import (
    BlockIndex,
    Contents,
    Digests,
    ListedDigests,
    Looked,
    Pace,
    Run,
)
from huai_schema.codec.escaping import unescape
from huai_schema.entries import File
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, basename, join
from huai_server.scan.native import take_apart
from huai_server.scan.types import (
    CHANGED,
    IDENTITY,
    VOLATILE,
    Problem,
    Scanned,
    ScannedDirectory,
    Unreadable,
    root_error,
)

_WINDOW = 4096
"""Directories or files that are held at a time; of a large directory the scan gives no more."""

_Item: TypeAlias = ScannedDirectory | Unreadable
_Known: TypeAlias = tuple[int, bytes] | None
"""A digest, after the time of birth that it holds for."""
_Found: TypeAlias = tuple[int | None, bytes] | str
"""Time of birth and digest of a file, or why it has none."""
_Answer: TypeAlias = tuple[int | None, bytes] | int | None
"""Time of birth and digest, an errno (0: it changed), or None: what is known holds."""

LATER = "its digest is computed later"
HOLES = "more of it is in holes than a commit reads"
WITHOUT_DIGEST = "it is committed without a digest"
_NO_PROBLEM = (LATER, VOLATILE, HOLES)
"""Reasons for which an old entry does not stay."""
DAMAGED = "its content is damaged, as a scrub found"

_IDENTITY_BYTES = 40
"""Of a record: device, inode, size, mtime and ctime tell one state of a file from every other."""


class DigestsError(HuaiError):
    """The digests of earlier commits cannot be read, or new ones not be kept."""

    exit_code = ExitCode.FILE_IO


class _File(NamedTuple):
    path: RelPath
    identity: bytes
    """Its record, up to the ctime."""
    known: _Known

    @property
    def size(self) -> int:
        """Bytes."""
        return int.from_bytes(self.identity[16:24], "little")

    @property
    def mtime(self) -> int:
        """Nanoseconds since the epoch."""
        return int.from_bytes(self.identity[24:32], "little", signed=True)


class LargeFiles(NamedTuple):
    """Which files get a block index, and who keeps it."""

    size: int
    """Bytes from which on they do."""
    keep: Callable[[BlockIndex], None]


class ReadingPolicy(NamedTuple):
    """Which content is read, and what is made of it."""

    later: bool = False
    """Of what no digest is known, none is computed."""
    pace: Pace | None = None
    """What it leaves no time for gets no digest, and is no problem."""
    is_damage: Callable[[RelPath, int, int, bytes], bool] | None = None
    """Of path, size, mtime and digest: whether a scrub has found that, and it is no new content.

    None: none has found any."""
    holes: int | None = None
    """Bytes in holes of files that are hashed at most; None: all."""


class DigestColumns:
    """Adds digests to what a scan yields; files that change while they are read become problems."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        threads: int,
        volatile: Callable[[RelPath], bool] = lambda _: False,
        large: LargeFiles | None = None,
        policy: ReadingPolicy | None = None,
    ) -> None:
        """`root` is the module's tree; `threads` files are read at a time.

        Digests are kept in `folder`.  A `volatile` file that changes while it is read gets no
        digest, and is no problem.  `large`: None: no file gets a block index.
        """
        self._root_path = root
        self._folder = folder
        self._threads = threads
        self._volatile = volatile
        self._large = large
        self._policy = policy or ReadingPolicy()
        self.hashed_files = 0
        self.hashed_bytes = 0
        self.without_digest: list[Problem] = []
        """Files that are committed as they are, but for their digests."""

    def fill_looked(
        self,
        looked: Looked,
        lock: Callable[[], AbstractContextManager[None]] = nullcontext,
        past: Snapshot | None = None,
    ) -> list[Problem]:
        """The digests of what a list names, and what became a problem: its old entry stays.

        `lock` is held while they are kept, for a caller that does not hold that of the module.
        Where digests come later, those stay that `past`, the last commit, has.
        """
        with self._keeping():
            digests = ListedDigests(os.fsencode(self._folder))
            doubts = digests.look_up_run(looked.run)
        self._open_contents()
        files = _doubtful(looked.run, doubts)
        results = self._find_out(files, past)
        with lock(), self._keeping():
            digests.settle_run(looked.run, _found(results))
            digests.finish()
        problems: list[Problem] = []
        for (directory, *_), file, found in zip(doubts, files, results, strict=True):
            if isinstance(found, str) and found not in _NO_PROBLEM:
                looked.keep(directory, basename(file.path))
                problems.append(Problem(file.path, found))
        return problems

    def fill(self, scanned: Iterable[_Item | Run]) -> Scanned:
        """The same sequence, with digests in the listings."""
        with self._keeping():
            self._digests = Digests(os.fsencode(self._folder))
        self._open_contents()
        try:
            for window in _windows(scanned):
                if isinstance(window, Run):
                    yield from self._fill_run(window)
                else:
                    yield from self._fill_window(window)
            with self._keeping():
                self._digests.finish()
        finally:
            with suppress(OSError):  # what is lost is read again
                self._digests.flush()

    def _open_contents(self) -> None:
        try:
            self._contents = Contents(
                os.fsencode(self._root_path),
                self._threads,
                self._policy.pace,
                self._policy.holes,
            )
        except OSError as error:
            raise root_error(self._root_path, error) from None

    def _fill_run(self, run: Run) -> Scanned:
        with self._keeping():
            doubts = self._digests.look_up_run(run)
        files = _doubtful(run, doubts)
        results = self._find_out(files)
        with self._keeping():
            self._digests.settle_run(run, _found(results))
        problems: dict[int, list[Problem]] = {}
        for (directory, *_), file, found in zip(doubts, files, results, strict=True):
            if isinstance(found, str) and found not in _NO_PROBLEM:
                problems.setdefault(directory, []).append(Problem(file.path, found))
        if not problems:
            yield run
            return
        for number, item in enumerate(take_apart(run)):
            yield item._replace(problems=tuple(problems.get(number, ())))

    def _fill_window(self, window: list[_Item]) -> Iterator[_Item]:
        directories = [item for item in window if isinstance(item, ScannedDirectory)]
        with self._keeping():
            doubts = self._digests.look_up(
                [
                    (
                        item.listing.leaves,
                        item.identities,
                        item.inode,
                        item.device,
                        item.file_system,
                    )
                    for item in directories
                ]
            )
        files = [_file(directories[number], file, known) for number, file, known in doubts]
        results = self._find_out(files)
        with self._keeping():
            columns = iter(self._digests.settle(_found(results)))
        problems: list[list[Problem]] = [list(item.problems) for item in directories]
        for (number, *_), file, found in zip(doubts, files, results, strict=True):
            if isinstance(found, str) and found not in _NO_PROBLEM:
                problems[number].append(Problem(file.path, found))
        said = iter(problems)
        for item in window:
            if isinstance(item, ScannedDirectory):
                listing = item.listing._replace(digests=next(columns))
                yield item._replace(listing=listing, problems=tuple(next(said)))
            else:
                yield item

    def _find_out(self, files: list[_File], past: Snapshot | None = None) -> list[_Found]:
        is_damage = self._policy.is_damage
        wanted: dict[bytes, _File] = {}
        for file in files:
            wanted.setdefault(file.identity, file)  # the first name of several
        found: dict[bytes, _Found] = {}
        if self._policy.later:
            found = {key: LATER for key, file in wanted.items() if not _stays(file, past)}
        for file, answer in self._read([file for key, file in wanted.items() if key not in found]):
            if isinstance(answer, int):
                reason = found[file.identity] = self._reason(file, answer)
                if reason == HOLES:
                    self.without_digest.append(Problem(file.path, reason, WITHOUT_DIGEST))
            elif answer is not None:
                size = file.size
                damaged = is_damage and is_damage(file.path, size, file.mtime, answer[1])
                found[file.identity] = DAMAGED if damaged else answer
                self.hashed_files += 1
                self.hashed_bytes += size
            elif file.known is not None:
                found[file.identity] = file.known
        return [found[file.identity] for file in files]

    def _read(self, files: list[_File]) -> Iterator[tuple[_File, _Answer]]:
        """What the engine says of each; a large file is read by all threads, by itself."""
        large = self._large
        small = [file for file in files if large is None or file.size < large.size]
        yield from zip(small, self._contents.find_out(small), strict=True)
        if large is None or len(small) == len(files):
            return
        for file in files:
            if file.size >= large.size:
                answer, index = self._contents.find_out_large(file)
                if index is not None and isinstance(answer, tuple):
                    with self._keeping():
                        large.keep(index)
                yield file, answer

    def _reason(self, file: _File, number: int) -> str:
        if number == errno.ECANCELED:
            return LATER
        if number == errno.EFBIG:
            return HOLES
        if number:
            return os.strerror(number)
        return VOLATILE if self._volatile(file.path) else CHANGED

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


def _stays(file: _File, past: Snapshot | None) -> bool:
    """Whether a digest is there to be kept; of lists it may not have been looked up."""
    if file.known is not None:
        return True
    entry = past.entry(file.path) if past else None
    return isinstance(entry, File) and bool(entry.digest) and entry[1:3] == (file.size, file.mtime)


def _doubtful(run: Run, doubts: Iterable[tuple[int, int, _Known]]) -> list[_File]:
    files: list[_File] = []
    for directory, number, known in doubts:
        path, identity = run.file(directory, number)
        files.append(_File(RelPath(path), identity, known))
    return files


def _found(results: Iterable[_Found]) -> list[tuple[int | None, bytes] | None]:
    return [None if isinstance(found, str) else found for found in results]


def _windows(scanned: Iterable[_Item | Run]) -> Iterator[list[_Item] | Run]:
    window: list[_Item] = []
    size = 0
    for item in scanned:
        if isinstance(item, Run):
            if window:
                yield window
            yield item
            window, size = [], 0
            continue
        window.append(item)
        size += 1
        if isinstance(item, ScannedDirectory):
            size += len(item.identities) // IDENTITY.size
        if size >= _WINDOW:
            yield window
            window, size = [], 0
    yield window


def _file(item: ScannedDirectory, number: int, known: _Known) -> _File:
    """One of the files of a directory."""
    records, begin = item.identities, number * IDENTITY.size
    offset = IDENTITY.unpack_from(records, begin)[6]
    leaves = item.listing.leaves
    name = leaves[offset : leaves.index(b"\t", offset)]
    path = join(item.listing.path, unescape(name) if b"\\" in name else name)
    return _File(path, records[begin : begin + _IDENTITY_BYTES], known)
