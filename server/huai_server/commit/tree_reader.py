"""Reading the tree of a module with its configuration: the engine's part of a commit, in one call.

The engine decides on problems, and what is committed in their place (`native/tree/src/commit/`).
Digests are computed for new and changed files, and looked up for all others.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, TypeAlias

from huai_native._native import BlockIndex, ChangeList, Pace, PackWriter
from huai_native._native import TreeReader as Engine
from huai_schema.codec.commits import Counts, Totals
from huai_schema.errors import HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.commit.remarks import KINDS, Remark
from huai_server.commit.shard_record import table_folders
from huai_server.config.tables import Module
from huai_server.config.volatile import Volatile
from huai_server.scan import exclude
from huai_server.scan.mounts import read_mounts
from huai_server.scan.owners import OwnerNames
from huai_server.scan.types import (
    Problem,
    ScanOptions,
    exhausted_error,
    reason_of,
    root_error,
    unreadable_root_error,
)
from huai_server.state.errors import StorageError, UsageError
from huai_server.state.paths import ModulePlaces
from huai_server.store import scrub_record
from huai_server.store.block_indices import BlockIndices

KEPT = "its old entry stays"
LEFT_OUT = "it is left out, because it has no old entry"
CLAMPED = "the nearest possible time is committed"
_OUTCOMES = (KEPT, LEFT_OUT, CLAMPED)
HOLES = "its holes are larger than a commit reads"
WITHOUT_DIGEST = "it is committed without a digest"

_HASH_THREADS = 2 * (os.cpu_count() or 1)
_HOLES = 64 << 30
"""The most bytes in holes of files that one commit hashes, in a minute or two.

Without a limit, a user who may write in the tree could keep a commit busy for hours with a file
that takes no space."""


class DigestOptions(NamedTuple):
    """The engine's options for digests: which content it reads, and where digests are stored."""

    folder: bytes
    """The folder with the table of digests, to which new ones are added."""
    more_folders: list[bytes]
    """Folders with further tables of digests, which are only read."""
    threads: int
    large: int | None
    """The least size in bytes for a block index; None makes none."""
    keep: Callable[[BlockIndex], None]
    """Stores a block index."""
    volatile: Callable[[bytes], bool] = lambda _: False
    """True for a file that may change while it is read: it gets no digest, without a problem."""
    later: bool = False
    """True if unknown digests are not computed now."""
    pace: Pace | None = None
    """The pace of reading; files without time get no digest, without a problem."""
    holes: int | None = None
    """The most bytes in holes of files that are hashed, if limited."""
    damage: tuple[tuple[bytes, int, int, bytes], ...] = ()
    """Path, size, mtime and digest of damage that a scrub found, which is not new content."""


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
    """The mount points in the tree."""
    open_groups: list[tuple[bytes, bytes]]
    """The inode and the first name of each file that may have names in another part."""
    shards: list[bytes]
    """The paths of the shards that it has."""


class ListedTree(NamedTuple):
    """The result of reading listed paths."""

    tree: bytes
    """The id of the root directory's tree."""
    totals: Totals
    counts: Counts | None
    """The changes; None if directories may have moved."""
    problems: tuple[Problem, ...]
    remarks: tuple[Remark, ...]
    pairs: bytes
    """The hardlink groups found (`link_record`)."""
    unknown: int
    """Listed paths without an entry now or before."""
    first_unknown: tuple[RelPath, ...]


Shard: TypeAlias = tuple[bytes, tuple[int, int], tuple[bytes, int] | None]
"""Path, file system and inode, and tree and entries; None for one that failed."""


class Part(NamedTuple):
    """A part of a tree: the directory `top`, less shards, whose results are known."""

    top: bytes
    shards: Sequence[Shard]
    objects: Snapshot | None
    """Any snapshot of the repository with their objects."""


WHOLE = Part(b"", (), None)

ReadPart: TypeAlias = tuple[
    bytes,
    tuple[tuple[int, int, int, int], int],
    tuple[
        list[tuple[bytes, int, int]],
        list[tuple[int, int, list[bytes]]],
        tuple[int, int, list[bytes]],
    ],
    set[bytes],
    tuple[tuple[int, int], list[tuple[bytes, bytes]], list[bytes]],
]
"""The values of the engine's `read_whole`."""


class TreeReader:
    """A reader of a module's tree, which may be scanned more than once for one commit.

    Its methods raise `ScanError` for a root that cannot be opened, and `StorageError` if digests
    cannot be read or stored.
    """

    def __init__(
        self,
        module: Module,
        places: ModulePlaces,
        blocks: BlockIndices,
        pace: Pace | None = None,
        tables: list[Path] | None = None,
        snapshot: Path | None = None,
    ) -> None:
        """With a `pace`, only digests are read, at that pace, and none is left for later.

        `tables` are folders with digests, by default of the module and all its shards; the first
        one gets those of this scan.  A `snapshot` of the tree is read in its place.
        """
        self._module = module
        self._root = snapshot or Path(module.path)
        self._is_snapshot = snapshot is not None
        self._places = places
        self._blocks = blocks
        self._pace = pace
        self.tables = tables or [places.folder, *table_folders(module, places)]
        self.hashed_files = 0
        self.hashed_bytes = 0
        self.without_digest: dict[RelPath, Problem] = {}
        """Files that are committed without their digests."""

    def read_whole(
        self,
        past: Snapshot | None,
        keep_pairs: Callable[[bytes], None],
        writer: PackWriter,
        *,
        accept_mounts: bool = False,
        part: Part = WHOLE,
    ) -> ReadTree:
        """Scan the tree, and write its objects; `keep_pairs` is called with groups of hardlinks.

        `past` is the last commit, whose entries stay where reading fails, None before the first
        one. `accept_mounts`: commit the present entries where a file system came or went.  Of
        shards in `part`, totals, problems, remarks and mount points are missing in the result.
        """
        tree, (totals, skipped), report, now, (_, open_groups, shards) = self.read_part(
            past, keep_pairs, writer, accept_mounts=accept_mounts, part=part
        )
        return ReadTree(
            tree, Totals(*totals), skipped, *self.convert(*report), now, open_groups, shards
        )

    def read_part(
        self,
        past: Snapshot | None,
        keep_pairs: Callable[[bytes], None],
        writer: PackWriter,
        *,
        accept_mounts: bool,
        part: Part,
    ) -> ReadPart:
        """Scan a part of the tree, and write its objects; return the values of the engine.

        The parameters are as for `read_whole`.
        """
        before = read_mounts(self._places.mounts)
        objects = part.objects.arguments if part.objects else None
        return self._open_engine().read_whole(
            past.arguments if past else None,
            (before, not self._module.one_file_system, accept_mounts),
            keep_pairs,
            writer,
            (part.top, part.shards, objects),
        )

    def read_listed(
        self,
        past: tuple[Snapshot, Totals],
        listed: tuple[ChangeList, bool],
        check_foreign: Callable[[list[bytes]], None],
        writer: PackWriter,
    ) -> ListedTree | None:
        """Read listed paths, and use `past`, the last commit, for all others.

        `listed` has the list, and true if each new name of a file comes with an old one.  Returns
        None if it is false, and a changed file has more names than are known.  `check_foreign`
        may raise an error for directories on other file systems.
        """
        snapshot, old = past
        result = self._open_engine().read_listed(
            snapshot.arguments,
            (*listed, os.fsencode(self._places.hardlinks)),
            check_foreign,
            writer,
        )
        if result is None:
            return None
        tree, (added, removed, changes), report, pairs, (unknown, first) = result
        totals = (sum(each) for each in zip(old, added, (-less for less in removed), strict=True))
        return ListedTree(
            *(tree, Totals(*totals), changes and Counts(*changes), *self.convert(*report)),
            *(pairs, unknown, tuple(map(RelPath, first))),
        )

    def read_digests(
        self, change_list: ChangeList, lock: AbstractContextManager[None]
    ) -> tuple[list[tuple[bytes, bytes, bytes]], list[tuple[bytes, str]]]:
        """Compute the digests of listed files, and store them under `lock`.

        Returns path, leaves and digest column of the directories with digests; and the files that
        cannot be read, or changed meanwhile, and why.
        """
        engine = self._open_engine()
        directories, hashed, unread = engine.read_digests(
            change_list, os.fsencode(self._places.hardlinks)
        )
        self._count_hashed(*hashed)
        with lock:
            engine.keep_digests()
        return directories, [(path, reason_of(reason)) for path, reason in unread]

    def _open_engine(self) -> Engine:
        """Open the tree in the engine; raises a `ScanError` if its root cannot be opened."""
        options, names = scan_options(self._module), OwnerNames()
        patterns = [exclude.check_exclude(text) for text in options.exclude]
        try:
            return Engine(
                os.fsencode(self._root),
                (
                    *(patterns, options.threads),
                    *(options.one_file_system, self._module.check_readable),
                    os.fsencode(self._module.path) if self._is_snapshot else None,
                ),
                (names.user, names.group) if options.owners else None,
                self._digest_options() if self._module.digest != "off" else None,
                self._as_error,
            )
        except OSError as error:
            raise root_error(self._root, error) from None

    def _digest_options(self) -> DigestOptions:
        """Return the engine's options for digests; without a pace, with the limits of a commit."""
        options = DigestOptions(
            os.fsencode(self.tables[0]),
            [os.fsencode(folder) for folder in self.tables[1:]],
            _HASH_THREADS,
            self._module.block_index_size or None,
            self._write_index,
            Volatile(self._module.volatile),
            pace=self._pace,
        )
        if self._pace is not None:
            return options
        damage = scrub_record.read_record(self._places.scrub).found_damage
        return options._replace(later=self._module.digest == "later", holes=_HOLES, damage=damage)

    def _write_index(self, index: BlockIndex) -> None:
        """Store a block index; an `OSError` becomes a `StorageError`."""
        try:
            self._blocks.write(index)
        except OSError as error:
            raise self._as_error("digests", error) from error

    def convert(
        self,
        problems: list[tuple[bytes, int, int]],
        remarks: list[tuple[int, int, list[bytes]]],
        hashed: tuple[int, int, list[bytes]],
    ) -> tuple[tuple[Problem, ...], tuple[Remark, ...]]:
        """Return the engine's problems and remarks as values, and count hashed files."""
        self._count_hashed(*hashed)
        converted = (
            Problem(RelPath(path), reason_of(reason), _OUTCOMES[outcome])
            for path, reason, outcome in problems
        )
        worded = (
            Remark(KINDS[kind], count, tuple(map(RelPath, paths))) for kind, count, paths in remarks
        )
        return tuple(converted), tuple(worded)

    def _count_hashed(self, files: int, size: int, holes: list[bytes]) -> None:
        """Count hashed files; note files of `holes` as without digest."""
        self.hashed_files += files
        self.hashed_bytes += size
        for path in map(RelPath, holes):
            self.without_digest[path] = Problem(path, HOLES, WITHOUT_DIGEST)

    def _as_error(self, stage: str, cause: OSError | int) -> HuaiError:
        """Return the exception for a failure that the engine reports.

        `stage` is "tree" or "digests".  A number as `cause` is the reason for an unreadable
        root.
        """
        if isinstance(cause, int):
            return unreadable_root_error(self._root, reason_of(cause) if cause else "it vanished")
        if stage == "tree":
            return exhausted_error(cause)
        return StorageError(
            f"{self.tables[0]}: cannot use the digests there: {cause.strerror}",
            hint="make room on the file system of this folder, and check that it can be written",
        )


def require_digests(name: str, module: Module) -> None:
    """Raise `UsageError` for a module without digests."""
    if module.digest == "off":
        raise UsageError(
            f'{name}: digest = "off" in server.toml: its files have no digests',
            hint='set digest = "now" or "later", and commit',
        )


def scan_options(module: Module) -> ScanOptions:
    """Return the options for scanning the tree of a module.

    They also exclude ftpsync's lock files and huai's own attestation at its top (`LEFT_OUT`).
    """
    return ScanOptions(
        one_file_system=module.one_file_system,
        owners=module.owners,
        exclude=(*exclude.LEFT_OUT, *map(os.fsencode, module.exclude)),
    )
