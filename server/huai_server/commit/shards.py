"""The results of the shards of one commit: scanned by an engine, or by commands before.

Order of writes: the shards' packs, before anything that names their objects; after the ref moved,
how the tree was cut, and the results are removed.  A run that was killed is continued by the next
one with the same base, which uses its results.
"""

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from huai_program.configuration import ConfigError
from huai_program.durable import replacing
from huai_program.durations import seconds
from huai_program.engine.signs import BEGAN, RECORD
from huai_program.packs import INDEX, PACK, TEMPORARY
from huai_program.record_file import RecordFile
from huai_schema import __version__
from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import is_within, show
from huai_server.commit.list_record import settings_of
from huai_server.commit.next_commit import NextCommit
from huai_server.commit.remarks import Remark
from huai_server.commit.result import CommitOptions
from huai_server.commit.shard_plan import keep_counts, plan_shards
from huai_server.commit.shard_record import (
    NO_BASE,
    SHARD_RECORD,
    ShardRecord,
    check_record,
    labels_at,
    shard_key,
    shards_folder,
    table_folders,
)
from huai_server.commit.tree_reader import WHOLE, Part, ReadTree
from huai_server.state.errors import storage_errors

_RESULTS = "results"
_AGE = 86400
"""The seconds after which results of a killed run are not used any more."""
_SHOWN = 10


class _RunRecord(msgspec.Struct, frozen=True):
    run: str
    base: str
    settings: str
    version: str
    began: float


_RUN = RecordFile(_RunRecord)


class Shards:
    """The shards of a commit, with their records; None for one that failed."""

    def __init__(self, making: NextCommit, age: int = _AGE) -> None:
        """Use results of a killed run that are at most `age` seconds old."""
        self._making = making
        self._age = age
        self._folder = shards_folder(making.module, making.places)
        self._results = self._folder / _RESULTS
        self._run_file = self._results / "run"
        self._records: dict[bytes, ShardRecord | None] = {}
        self._base = making.head.commit if making.head else NO_BASE

    def collect(self, options: CommitOptions) -> None:
        """Load the results of shards, or scan them; copy their packs into the repository, durably.

        Scans nothing without an engine, or for a snapshot.  Raises `EngineError`, or
        `ConfigError` for a result that does not fit the commit.
        """
        url = options.engine or self._making.module.engine.url
        if options.shards is not None:
            self._results = options.shards
            self._load_all()
        elif url and options.at is None:  # shards know only the tree itself
            self._run(url, options)
        if self._records:
            self._install_packs()
            keys = {shard_key(path) for path in self._records}
            reader, module = self._making.reader, self._making.module
            tables = table_folders(module, self._making.places)
            reader.tables = [
                self._making.places.folder,
                *(table for table in tables if table.name not in keys),
            ]

    def part(self) -> Part:
        """Return the part that is left to scan: the tree without shards that have a result."""
        if not self._records:
            return WHOLE
        shards = [
            (path, record.view, (record.tree, record.entries)) if record else (path, (0, 0), None)
            for path, record in self._records.items()
        ]
        repository = self._making.repository
        return Part(b"", shards, Snapshot(repository, b"\0" * 20))

    def add_to(self, read: ReadTree) -> ReadTree:
        """Return `read` with totals, problems, remarks and mounts of its shards added.

        Adds their hardlinks to the record of links.
        """
        making = self._making
        for record in map(self._records.get, read.shards):
            assert record is not None  # noqa: S101 - only a shard with a result is in the tree
            problems, remarks = making.reader.convert(
                record.problems, record.remarks, record.hashed
            )
            totals = (sum(pair) for pair in zip(read.totals, record.totals, strict=True))
            making.links.add(record.pairs)
            read = read._replace(
                totals=Totals(*totals),
                skipped=read.skipped + record.skipped,
                problems=(*read.problems, *problems),
                remarks=_sum(read.remarks, remarks),
                mounts=read.mounts | set(record.mounts),
                open_groups=[*read.open_groups, *record.open_groups],
            )
        return read

    def groups(self, read: ReadTree) -> list[list[bytes]]:
        """Return all names of each file that has names in several parts of the tree."""
        return parted_groups(read.open_groups, self._making.links.pairs())

    def finish(self) -> None:
        """Remove the results, which the commit has now, and digests of earlier shards."""
        if not self._records:
            return
        if self._results.parent == self._folder:
            shutil.rmtree(self._results, ignore_errors=True)
        for path, record in self._records.items():
            names = [shard_key(path) + suffix for suffix in (RECORD, BEGAN)]
            if record and record.pack:
                names += [record.pack + suffix for suffix in (PACK, INDEX)]
            for name in names:
                (self._results / name).unlink(missing_ok=True)
        keep_counts(self._folder, filter(None, self._records.values()))
        if None not in self._records.values():
            for table in self._making.reader.tables[1:]:
                shutil.rmtree(table, ignore_errors=True)

    def _load_all(self) -> None:
        """Load the records that commands left; planned shards without one count as failed.

        Raises `ConfigError` for a malformed record, and it or `EngineError` for one that does not
        fit the commit.
        """
        for path in sorted(self._results.glob(f"*{RECORD}")):
            record = SHARD_RECORD.load(path)
            if record is None:
                raise ConfigError(
                    f"{path}: not the result of a shard", hint="remove it, and scan it again"
                )
            check_record(record, self._base, self._making.module)
            self._records[record.path] = record
        planned = plan_shards(self._making.past, self._making.module, self._folder)
        self._records.update(
            (path, None)
            for path in planned
            if not any(is_within(path, each) or is_within(each, path) for each in self._records)
        )

    def _run(self, url: str, options: CommitOptions) -> None:
        """Scan, on the engine at `url`, the shards that have no result of a killed run.

        Deletes old and other results, and keeps the record of each shard, None if it failed.
        Raises `EngineError`, `StorageError`, and `ConfigError` for a result that does not fit the
        commit.
        """
        from huai_program.engine.tasks import Task, open_engine, running  # loads multiprocessing
        from huai_server.commit.shard_scan import ShardTask, scan

        making, now = self._making, time.time()
        start, labels = open_engine(url), labels_at(url, making.module.engine)
        planned = [*plan_shards(making.past, making.module, self._folder)]
        if not planned:
            return
        with storage_errors(self._results):
            run = _RUN.load(self._run_file)
            current = self._base, settings_of(making.module), __version__
            if (
                not run
                or (run.base, run.settings, run.version) != current
                or run.began < now - self._age
            ):
                shutil.rmtree(self._results, ignore_errors=True)
                self._results.mkdir(parents=True, exist_ok=True)
                run = _RunRecord(os.urandom(8).hex(), *current, now)
                _RUN.save(self._run_file, run)
        name, root = making.places.folder.name, str(making.places.root)
        folder = str(self._results)

        def task(path: bytes) -> Task:
            values = root, name, path, self._base, folder, run.run, options.accept_mounts
            text = msgspec.json.encode(ShardTask(*values)).decode()
            return Task(self._results, shard_key(path), show(path), scan, text, labels.get(path))

        deadline = seconds(making.module.engine.deadline)
        with running(start, deadline, options.on_shards) as run_tasks:
            run_tasks([task(path) for path in planned if self._load(path, run.run) is None])
        self._records = {path: self._load(path, run.run) for path in planned}

    def _load(self, path: bytes, run: str) -> ShardRecord | None:
        """Return the record of a shard; None if it is missing or belongs to another run.

        Raises `EngineError` or `ConfigError` if it does not fit the commit.
        """
        record = SHARD_RECORD.load(self._results / f"{shard_key(path)}{RECORD}")
        if record is None or record.run != run:
            return None
        check_record(record, self._base, self._making.module)
        return record

    def _install_packs(self) -> None:
        """Copy the packs into the repository, durably, each index last; present ones are skipped.

        Adds the copies to the `packs` of the run.  A shard whose pack is missing counts as failed.
        """
        folder = self._making.repository.pack_folder
        for path, record in self._records.items():
            if record is None or record.pack is None:
                continue
            for suffix in (PACK, INDEX):
                source, to = (place / f"{record.pack}{suffix}" for place in (self._results, folder))
                if to.exists():
                    continue
                if not source.exists():
                    self._records[path] = None
                    break
                if suffix == PACK:
                    self._making.packs.add(to)
                _copy(source, to)


def parted_groups(
    open_groups: list[tuple[bytes, bytes]], pairs: Iterable[tuple[bytes, bytes]]
) -> list[list[bytes]]:
    """Return all names of each file whose inode is open in several parts.

    `open_groups` has inodes with their leaders, `pairs` leaders with the members in their part.
    """
    leaders: dict[bytes, list[bytes]] = defaultdict(list)
    for inode, leader in open_groups:
        leaders[inode].append(leader)
    parted = [paths for paths in leaders.values() if len(paths) > 1]
    members: dict[bytes, list[bytes]] = {path: [path] for paths in parted for path in paths}
    for leader, member in pairs if members else ():
        if leader in members:
            members[leader].append(member)
    return [[name for path in paths for name in members[path]] for paths in parted]


def _copy(source: Path, to: Path) -> None:
    """Copy a pack or its index to the path `to`, durably.

    Raises `ConfigError` if the SHA-1 at its end is wrong, `StorageError` if it cannot be
    read or written.
    """
    from hashlib import sha1

    with storage_errors(to), replacing(to, to.with_name(f"{TEMPORARY}shard")) as file:
        checksum, tail = sha1(usedforsecurity=False), b""
        with source.open("rb") as content:
            while block := content.read(1 << 20):
                file.write(block)
                checksum.update((tail + block)[:-20])
                tail = (tail + block)[-20:]
        if checksum.digest() != tail:
            raise ConfigError(f"{source}: it is damaged", hint="scan the shard again")


def _sum(some: tuple[Remark, ...], more: tuple[Remark, ...]) -> tuple[Remark, ...]:
    """Return the remarks of two parts, with the first paths of each kind."""
    kinds = {remark.kind: remark for remark in some}
    for kind, number, paths in more:
        former = kinds.get(kind, Remark(kind, 0, ()))
        kinds[kind] = Remark(kind, former.number + number, (*former.paths, *paths)[:_SHOWN])
    return tuple(kinds.values())
