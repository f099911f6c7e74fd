"""Digests that commits left out, computed later: of the newest files first.

Which are missing is read from the last commit; their files are read without the module's lock, at
idle disk priority.  What is computed is kept after each batch, so a run that is killed loses one
batch at most; a file that there is no time to read to its end is begun again by the next run.
Order of writes: the table of digests, after
each batch; then the commit.

Rule: a commit made here changes digests only.  A digest is committed if all that the commit says of
the file is still so; of others the next commit has to say more first.
"""

import math
from pathlib import Path
from typing import NamedTuple

from huai_native._native import FoundDigests, Pace, Undigested
from huai_program.locking import locked
from huai_program.priority import idle_disk
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath
from huai_server.commit.change_lists import list_of
from huai_server.commit.commit import commit_digests
from huai_server.commit.newest import newest_commit
from huai_server.commit.read_limits import TOO_LARGE, ReadLimits
from huai_server.commit.tree_reader import TreeReader, require_digests
from huai_server.config.tables import Module
from huai_server.scan.types import Problem
from huai_server.signing.keys import ServerKeys
from huai_server.state.paths import ModulePlaces
from huai_server.store.block_indices import BlockIndices
from huai_server.store.repository import Head

NOT_YET = "it gets no digest yet"

_ROUND = 65_536
"""Files of one commit: so many are held in memory, and the engine finds them in one pass."""
_BATCH = 4096
_BATCH_BYTES = 64 << 20
"""Files, and bytes of them, that are read before what was computed is kept."""
_PATIENCE = math.inf
"""Seconds to wait for a commit of the module to end: nothing here is urgent."""


class DigestResult(NamedTuple):
    """What a run did."""

    head: Head
    """The newest commit, made now or before."""
    changed: bool
    """Whether a commit was made."""
    missing: int
    """Files of the newest commit that have none."""
    hashed_files: int
    hashed_bytes: int
    problems: tuple[Problem, ...]
    """Files that could not be read, or changed meanwhile."""

    @property
    def exit_code(self) -> ExitCode:
        """How the program should end."""
        return ExitCode.INCOMPLETE if self.problems else ExitCode.OK


def digest_tree(
    name: str,
    module: Module,
    places: ModulePlaces,
    limits: ReadLimits,
    keys: ServerKeys | None = None,
) -> DigestResult:
    """Compute and commit the digests that the last commit lacks, as far as `limits` allow."""
    require_digests(name, module)
    head, past = newest_commit(name, places)
    pace = limits.pace()
    reading = _Reading(module, places, pace)
    changed, last = False, None
    while not pace.is_over():
        wanted = Undigested((past.reader, past.tree, past.limit), _ROUND, last)
        last = wanted.last
        if last is None:
            break
        for paths in wanted.lists(_BATCH, _BATCH_BYTES):
            if pace.is_over():
                break
            reading.read(paths)
        found, reading.found = reading.found, FoundDigests()
        if found:
            made = commit_digests(name, module, places, found, keys=keys, wait=_PATIENCE)
            changed = changed or made.changed
        head, past = newest_commit(name, places)
    return DigestResult(
        head,
        changed,
        past.undigested().files,
        reading.reader.hashed_files,
        reading.reader.hashed_bytes,
        tuple(reading.problems),
    )


class _Reading:
    """Reads files of the tree; has found those that are as they were when they were looked at."""

    def __init__(self, module: Module, places: ModulePlaces, pace: Pace) -> None:
        self._root = Path(module.path)
        self._places = places
        self.reader = TreeReader(module, places, BlockIndices(places.repository), pace)
        self._pace = pace
        self.found = FoundDigests()
        self.problems: list[Problem] = []

    def read(self, paths: bytes) -> None:
        """Read those whose digests are not known, and keep these; each path is ended by a NUL."""
        named = list_of(self._root, map(RelPath, paths.split(b"\0")[:-1])).named
        lock = locked(self._places.lock, wait=_PATIENCE)
        with idle_disk():
            unread = self.reader.read_digests(named, self.found, lock)
        self.problems += (Problem(path, reason, NOT_YET) for path, reason in unread)
        if self._pace.is_over() and not (self.reader.hashed_files or self.found):
            first = RelPath(paths.partition(b"\0")[0])
            self.problems.append(Problem(first, TOO_LARGE, NOT_YET))
