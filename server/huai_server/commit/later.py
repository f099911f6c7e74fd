"""Digests that commits left out, computed later: for the newest files first.

The last commit lists the missing ones; their files are read without the module's lock, at idle disk
priority.  Digests are stored after each batch, so a killed run loses one batch at most; a file that
cannot be read to its end in time is begun again by the next run.  Order of writes: the table of
digests, after each batch; then the commit.

Rule: a commit made here changes digests only.  A digest is committed if everything else that the
commit says of the file is still true; other files wait for the next commit.
"""

import math
from pathlib import Path
from typing import NamedTuple

from huai_native._native import FoundDigests, Pace, find_undigested
from huai_program.locking import locked
from huai_program.priority import idle_disk
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath
from huai_server.commit.change_lists import list_of
from huai_server.commit.commit import commit_digests
from huai_server.commit.read_limits import TOO_LARGE, ReadLimits
from huai_server.commit.tree_reader import TreeReader, require_digests
from huai_server.config.tables import Module
from huai_server.scan.types import Problem
from huai_server.signing.keys import ServerKeys
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


class DigestResult(NamedTuple):
    """The result of a run."""

    head: Head
    """The newest commit, made now or before."""
    changed: bool
    missing: int
    """Files of the newest commit without a digest."""
    hashed_files: int
    hashed_bytes: int
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
    keys: ServerKeys | None = None,
) -> DigestResult:
    """Compute and commit the digests that the last commit lacks, as far as `limits` allow.

    Waits for other runs without a time limit.  Raises `NoDigestsError` if the module is configured
    without digests, `NoCommitError` before its first commit, `StoreError` or `FormatError` if that
    is damaged, and `PendingCommitError`.
    """
    require_digests(name, module)
    head, past = newest_commit(name, places)
    pace = limits.pace()
    reading = _Reading(module, places, pace)
    changed, last = False, None
    while not pace.is_over():
        _, _, last, lists = find_undigested(past.arguments, _ROUND, last, (_BATCH, _BATCH_BYTES))
        for paths in lists:
            if pace.is_over():
                break
            reading.read(paths)
        digests, reading.digests = reading.digests, FoundDigests()
        if digests:
            committed = commit_digests(name, module, places, digests, keys=keys, wait=_PATIENCE)
            changed = changed or committed.changed
        head, past = newest_commit(name, places)
        if last is None:
            break
    return DigestResult(
        head,
        changed,
        past.undigested()[0],
        reading.reader.hashed_files,
        reading.reader.hashed_bytes,
        tuple(reading.problems),
    )


class _Reading:
    """The digests of unchanged files that were read since the last commit, and all problems met."""

    def __init__(self, module: Module, places: ModulePlaces, pace: Pace) -> None:
        self._root = Path(module.path)
        self._places = places
        self.reader = TreeReader(module, places, BlockIndices(places.repository), pace)
        self._pace = pace
        self.digests = FoundDigests()
        self.problems: list[Problem] = []

    def read(self, paths: bytes) -> None:
        """Compute the digests of `paths`, each ended by a NUL; store them under the module's lock.

        Adds them to `digests`, and unreadable, changed or too large files to `problems`.
        """
        change_list = list_of(self._root, map(RelPath, paths.split(b"\0")[:-1])).change_list
        lock = locked(self._places.lock, wait=_PATIENCE)
        with idle_disk():
            unread = self.reader.read_digests(change_list, self.digests, lock)
        self.problems += (Problem(path, reason, NOT_YET) for path, reason in unread)
        if self._pace.is_over() and not (self.reader.hashed_files or self.digests):
            first = RelPath(paths.partition(b"\0")[0])
            self.problems.append(Problem(first, TOO_LARGE, NOT_YET))
