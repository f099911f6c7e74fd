"""Digests that commits left out, computed later: for the newest files first.

The last commit lists the missing ones; their files are read without the module's lock, at idle disk
priority.  Digests are stored after each batch, so a killed run loses one batch at most; a file that
cannot be read to its end in time is begun again by the next run.  Order of writes: the table of
digests, after each batch; then the commit.

Rule: a commit made here changes digests only.  A digest is committed if everything else that the
commit says of the file is still true; other files wait for the next commit.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from huai_native._native import FoundDigests, Pace, find_undigested
from huai_program.locking import LockedError, locked
from huai_program.record_file import RecordFile
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath
from huai_server.commit.change_lists import list_of
from huai_server.commit.commit import LoadSettings, commit_digests
from huai_server.commit.file_lists import NO_RESULT, ListTask, Read, Reader, opened_reader
from huai_server.commit.read_limits import TOO_LARGE, ReadLimits
from huai_server.commit.tree_reader import TreeReader, require_digests
from huai_server.config.tables import Module
from huai_server.scan.types import Problem
from huai_server.state.paths import ModulePlaces
from huai_server.store.block_indices import BlockIndices
from huai_server.store.module_state import newest_commit
from huai_server.store.repository import Head

NOT_YET = "it gets no digest yet"

_ROUND = 65_536
"""Files of one commit: they are held in memory, and the engine finds them in one pass."""
_BATCH = 4096
_BATCH_BYTES = 64 << 20
"""Files and bytes that are read before their digests are stored."""
_PATIENCE = math.inf
"""Seconds to wait for a commit of the module to end: nothing here is urgent."""
_WORKER_PATIENCE = 5.0
"""The same for a process of an engine: the commit may wait for that process."""


class DigestResult(NamedTuple):
    """The result of a run."""

    head: Head
    """The newest commit, made now or before."""
    changed: bool
    """True if a commit was made."""
    missing: int
    """Files of the newest commit without a digest."""
    hashed_files: int
    hashed_bytes: int
    """The files that this run read, and their bytes."""
    problems: tuple[Problem, ...]
    """Files that could not be read, or changed meanwhile."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code: `INCOMPLETE` if there are problems, else `OK`."""
        return ExitCode.INCOMPLETE if self.problems else ExitCode.OK


def digest_tree(
    name: str,
    module: Module,
    places: ModulePlaces,
    limits: ReadLimits,
    load_settings: LoadSettings | None = None,
    engine: str = "",
) -> DigestResult:
    """Compute and commit the digests that the last commit lacks, as far as `limits` allow.

    The processes of `engine` (a URL, empty for the configured one, if any) read the files.  Each
    commit calls `load_settings` as `commit_tree` does.  Waits for other runs without a time limit.
    Raises `UsageError` if the module is configured without digests, `NoCommitError` before its
    first commit, and `EngineError`.
    """
    require_digests(name, module)
    head, past = newest_commit(name, places)
    pace = limits.pace()
    changed, last, hashed_files, hashed_bytes, is_named = False, None, 0, 0, False
    problems: list[Problem] = []
    with opened_reader((name, module, places), limits, pace, _READER, engine) as read:
        while not pace.is_over():
            _, _, last, lists = find_undigested(
                past.arguments, _ROUND, last, (_BATCH, _BATCH_BYTES)
            )
            digests = FoundDigests()
            for paths, result in _read_stored(read, lists, places.lock):
                if result is None:
                    problems += (Problem(path, NO_RESULT, NOT_YET) for path in _split(paths))
                    continue
                for directory in result.directories:
                    digests.gather(*directory)
                hashed_files += result.files
                hashed_bytes += result.size
                problems += (Problem(RelPath(path), why, NOT_YET) for path, why in result.unread)
                if pace.is_over() and not (hashed_files or digests or is_named):
                    problems.append(Problem(_split(paths)[0], TOO_LARGE, NOT_YET))
                    is_named = True  # the lists after it began later
            if digests:
                committed = commit_digests(
                    name, module, places, digests, load_settings, wait=_PATIENCE
                )
                changed = changed or committed.changed
            head, past = newest_commit(name, places)
            if last is None:
                break
    missing = past.undigested()[0]
    return DigestResult(head, changed, missing, hashed_files, hashed_bytes, tuple(problems))


class _ListDigests(msgspec.Struct, frozen=True):
    """The digests of a list of files."""

    directories: list[tuple[bytes, bytes, bytes]]
    """Path, leaves and digest column of each directory."""
    files: int
    size: int
    """The files that were read, and their bytes."""
    unread: list[tuple[bytes, str]]
    """The files that could not be read, or changed meanwhile, and why."""
    stored: bool = True
    """False if a commit held the lock, and the list must be read again."""


def _read_stored(
    read: Read[bytes, _ListDigests], lists: list[bytes], lock: Path
) -> Iterator[tuple[bytes, _ListDigests | None]]:
    """Yield lists with their results, less those that are not stored: they are read again.

    Waits here for a commit that holds `lock`, so that it has the processes of the engine.
    """
    while lists:
        unstored = []
        for paths, result in read(lists):
            if result is None or result.stored:
                yield paths, result
                continue
            unstored.append(paths)
            with locked(lock, wait=_PATIENCE):
                pass
        lists = unstored


def _read(
    module: Module,
    places: ModulePlaces,
    pace: Pace,
    paths: bytes,
    *,
    wait: float = _PATIENCE,
) -> _ListDigests:
    """Compute the digests of `paths`, each ended by a NUL, and store them under the lock.

    If it is not free within `wait` seconds, drops them and returns a result that is not `stored`.
    """
    reader = TreeReader(module, places, BlockIndices(places.repository), pace)
    change_list = list_of(Path(module.path), _split(paths)).change_list
    try:
        lock = locked(places.lock, wait=wait)
        directories, unread = reader.read_digests(change_list, lock)
    except LockedError:
        return _ListDigests([], 0, 0, [], stored=False)
    return _ListDigests(directories, reader.hashed_files, reader.hashed_bytes, unread)


def digest_files(text: str) -> None:
    """Compute the digests of a list of files, a `ListTask` in JSON; for a process of an engine."""
    _READER._replace(read=partial(_read, wait=_WORKER_PATIENCE)).run(text)


def _split_labels(paths: bytes, label_of: Callable[[bytes], str]) -> Iterator[tuple[str, bytes]]:
    """Yield the label and the paths of each part of a list."""
    for label, part in groupby(sorted(_split(paths), key=label_of), label_of):
        yield label, b"".join(path + b"\0" for path in part)


_READER = Reader(
    *(_read, ListTask[bytes], RecordFile(_ListDigests, durable=False), digest_files, _split_labels)
)


def _split(paths: bytes) -> list[RelPath]:
    """Return the paths of a list."""
    return [RelPath(path) for path in paths.split(b"\0")[:-1]]
