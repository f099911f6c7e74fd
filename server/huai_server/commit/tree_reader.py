"""Reading the tree of a module as it is configured: the engine's part of a commit, in one call.

What is a problem, and what is committed in its place, is the engine's to say
(`native/tree/src/commit/`).  Digests are computed of new and changed files, and remembered of all
others.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from huai_native._native import BlockIndex, ChangeList, FoundDigests, Pace, PackWriter
from huai_native._native import TreeReader as Engine
from huai_schema.codec.commits import Totals
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.git.objects import ObjectReader
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.commit.remarks import Remark, remarks_of
from huai_server.config.tables import Module
from huai_server.config.volatile import Volatile
from huai_server.scan import exclude
from huai_server.scan.mounts import read_mounts
from huai_server.scan.native import exhausted, reason_of
from huai_server.scan.owners import OwnerNames
from huai_server.scan.types import Problem, ScanOptions, root_error, unreadable_root
from huai_server.state.paths import ModulePlaces
from huai_server.store import scrub_record
from huai_server.store.block_indices import BlockIndices

KEPT = "its old entry stays"
LEFT_OUT = "it is left out, as there is no old entry"
CLAMPED = "the nearest time that fits is committed"
_OUTCOMES = (KEPT, LEFT_OUT, CLAMPED)
HOLES = "more of it is in holes than a commit reads"
WITHOUT_DIGEST = "it is committed without a digest"

_HASH_THREADS = 2 * (os.cpu_count() or 1)
_HOLES = 64 << 30
"""Bytes in holes of files that one commit hashes, in a minute or two.

Without a limit, who may write in the tree could keep it at work for hours with a file that takes no
room."""


class DigestsError(HuaiError):
    """The digests of earlier commits cannot be read, or new ones not be kept."""

    exit_code = ExitCode.FILE_IO


class DigestOptions(NamedTuple):
    """Which content the engine reads, and what it makes of it."""

    folder: bytes
    """Where digests are kept."""
    threads: int
    """Files that are read at a time."""
    large: int | None
    """Bytes from which on a file gets a block index; None: none does."""
    keep: Callable[[BlockIndex], None]
    """Keeps a block index."""
    volatile: Callable[[bytes], bool] = lambda _: False
    """True for a file that may change while it is read: it gets no digest, and is no problem."""
    later: bool = False
    """Of what no digest is known, none is computed."""
    pace: Pace | None = None
    """What it leaves no time for gets no digest, and is no problem."""
    holes: int | None = None
    """Bytes in holes of files that are hashed at most; None: all."""
    damage: tuple[tuple[bytes, int, int, bytes], ...] = ()
    """Path, size, mtime and digest of damage that a scrub found: it is no new content."""


class ReadTree(NamedTuple):
    """A tree that was read and written as git objects."""

    tree: bytes
    """The id of the root directory's tree."""
    totals: Totals
    skipped: int
    """Entries that no snapshot can hold."""
    problems: tuple[Problem, ...]
    remarks: tuple[Remark, ...]
    mounts: set[bytes]
    """The mount points in it."""


class ListedTree(NamedTuple):
    """What came of lists."""

    tree: bytes
    """The id of the root directory's tree."""
    totals: Totals
    problems: tuple[Problem, ...]
    remarks: tuple[Remark, ...]
    pairs: bytes
    """Hardlink groups that were found (`link_record`)."""
    unknown: int
    """Named paths at which nothing is, and nothing was."""
    first_unknown: tuple[RelPath, ...]


class TreeReader:
    """Reads the tree of a module, which may be looked at more than once for one commit."""

    def __init__(
        self, module: Module, places: ModulePlaces, blocks: BlockIndices, pace: Pace | None = None
    ) -> None:
        """`pace`: digests are read for themselves, none of them later."""
        self._module = module
        self._root = Path(module.path)
        self._places = places
        self._blocks = blocks
        self._pace = pace
        self.hashed_files = 0
        self.hashed_bytes = 0
        self.without_digest: dict[RelPath, Problem] = {}
        """Files that are committed as they are, but for their digests."""

    def read_whole(
        self,
        past: Snapshot | None,
        keep_pairs: Callable[[bytes], None],
        writer: PackWriter,
        *,
        accept_mounts: bool = False,
    ) -> ReadTree:
        """Scan everything; `keep_pairs` gets the groups of hardlinks, some at a time.

        `accept_mounts`: take what is there where a file system came or went.
        """
        before = read_mounts(self._places.mounts)
        tree, (totals, skipped), told, now = self._open().read_whole(
            _lent(past) if past else None,
            (before, not self._module.one_file_system, accept_mounts),
            keep_pairs,
            writer,
        )
        return ReadTree(tree, Totals(*totals), skipped, *self._take(*told), now)

    def read_listed(
        self,
        past: tuple[Snapshot, Totals],
        named: tuple[ChangeList, bool],
        check_foreign: Callable[[list[bytes]], None],
        writer: PackWriter,
    ) -> ListedTree | None:
        """Look at what a list names, and take all else from `past`, the last commit.

        `named`: also whether a new name of a file comes with an old one in the list.  None: it does
        not, and a file that changed has more names than are known.  `check_foreign` may refuse the
        directories on other file systems.
        """
        snapshot, old = past
        found = self._open().read_listed(
            _lent(snapshot),
            (*named, os.fsencode(self._places.hardlinks)),
            check_foreign,
            writer,
        )
        if found is None:
            return None
        tree, (added, removed), told, pairs, (unknown, first) = found
        totals = (sum(each) for each in zip(old, added, (-less for less in removed), strict=True))
        return ListedTree(
            *(tree, Totals(*totals), *self._take(*told)),
            *(pairs, unknown, tuple(map(RelPath, first))),
        )

    def read_digests(
        self, named: ChangeList, into: FoundDigests, lock: AbstractContextManager[None]
    ) -> list[tuple[RelPath, str]]:
        """Find the digests of what a list names; they are kept under the `lock` of the module.

        Returns the files that cannot be read, or changed meanwhile, and why.
        """
        engine = self._open()
        hashed, unread = engine.read_digests(named, os.fsencode(self._places.hardlinks), into)
        self._count(*hashed)
        with lock:
            engine.keep_digests()
        return [(RelPath(path), reason_of(reason)) for path, reason in unread]

    def _open(self) -> Engine:
        options, names = scan_options(self._module), OwnerNames()
        patterns = [exclude.check_exclude(text) for text in options.exclude]
        try:
            return Engine(
                os.fsencode(self._root),
                (
                    *(patterns, options.threads),
                    *(options.one_file_system, self._module.check_readable),
                ),
                (names.user, names.group) if options.owners else None,
                self._digest_options() if self._module.digest != "off" else None,
                self._explain,
            )
        except OSError as error:
            raise root_error(self._root, error) from None

    def _digest_options(self) -> DigestOptions:
        options = DigestOptions(
            os.fsencode(self._places.folder),
            _HASH_THREADS,
            self._module.indexed or None,
            self._keep,
            Volatile(self._module.volatile),
            pace=self._pace,
        )
        if self._pace is not None:
            return options
        damage = scrub_record.read_record(self._places.scrub).found_damage
        return options._replace(later=self._module.digest == "later", holes=_HOLES, damage=damage)

    def _keep(self, index: BlockIndex) -> None:
        try:
            self._blocks.write(index)
        except OSError as error:
            raise self._explain("digests", error) from error

    def _take(
        self,
        problems: list[tuple[bytes, int, int]],
        remarks: list[tuple[int, int, list[bytes]]],
        hashed: tuple[int, int, list[bytes]],
    ) -> tuple[tuple[Problem, ...], tuple[Remark, ...]]:
        self._count(*hashed)
        told = (
            Problem(RelPath(path), reason_of(reason), _OUTCOMES[outcome])
            for path, reason, outcome in problems
        )
        return tuple(told), remarks_of(remarks)

    def _count(self, files: int, size: int, holes: list[bytes]) -> None:
        self.hashed_files += files
        self.hashed_bytes += size
        for path in map(RelPath, holes):
            self.without_digest[path] = Problem(path, HOLES, WITHOUT_DIGEST)

    def _explain(self, stage: str, cause: OSError | int) -> HuaiError:
        """Return the exception for what failed, as the engine names it."""
        if isinstance(cause, int):
            return unreadable_root(self._root, reason_of(cause) if cause else "it vanished")
        if stage == "tree":
            return exhausted(cause)
        return DigestsError(
            f"{self._places.folder}: the digests there cannot be used: {cause.strerror}",
            hint="make room on the file system of this folder, and check that it can be written",
        )


class NoDigestsError(HuaiError):
    """The module is configured to have no digests."""

    exit_code = ExitCode.USAGE


def require_digests(name: str, module: Module) -> None:
    """Raise `NoDigestsError` for a module without digests."""
    if module.digest == "off":
        raise NoDigestsError(
            f'{name}: digest = "off" in server.toml: its files have no digests',
            hint='set digest = "now" or "later", and commit',
        )


def scan_options(module: Module) -> ScanOptions:
    """How the tree of a module is looked at."""
    return ScanOptions(
        one_file_system=module.one_file_system,
        owners=module.owners,
        exclude=(*exclude.LEFT_OUT, *map(os.fsencode, module.exclude)),
    )


def _lent(past: Snapshot) -> tuple[ObjectReader, bytes, int]:
    return past.reader, past.tree, past.limit
