"""The scan of one shard, by a process that may run on another node.

It reads the state root and the tree, and writes its result, its digests and block indices.  Results
are data: a pack and a record, which is written last.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from huai_program.engine.signs import BEGAN, RECORD, alive
from huai_program.locking import LockedError, locked
from huai_program.packs import opened_writer
from huai_schema import __version__
from huai_schema.layout.snapshot import Snapshot
from huai_server.commit.list_record import settings_of
from huai_server.commit.shard_record import (
    NO_BASE,
    SHARD_RECORD,
    ShardRecord,
    shard_key,
    shards_folder,
    table_folders,
)
from huai_server.commit.tree_reader import Part, TreeReader
from huai_server.config.load import load
from huai_server.state.errors import UsageError, storage_errors
from huai_server.state.paths import ModulePlaces, module_places
from huai_server.store.block_indices import BlockIndices
from huai_server.store.repository import Repository, metadata_errors


class ShardTask(msgspec.Struct, frozen=True):
    """The arguments of a scan."""

    root: str
    """The state root."""
    name: str
    path: bytes
    """The top directory, relative to the root of the tree."""
    base: str | None
    """A commit or `NO_BASE`; None for the newest commit."""
    folder: str
    """The folder for the result."""
    run: str = ""
    accept_mounts: bool = False


def scan_shard(task: ShardTask) -> ShardRecord:
    """Scan a directory; write its pack and record into `task.folder`, and return the record.

    A record of the same run is returned without a scan.  Raises `UsageError` if the path is not
    below the root, and any `HuaiError` of the configuration, the repository or the scan.
    """
    path, folder, key = task.path, Path(task.folder), shard_key(task.path)
    if not path or any(name in {b"", b".", b".."} for name in path.split(b"/")):
        raise UsageError(
            f"{os.fsdecode(path)}: a shard is a directory below the root of the tree",
            hint="give its path relative to the root, without . and ..",
        )
    began, root = time.monotonic(), Path(task.root)
    module, places = load(root).committed_module(task.name), module_places(root, task.name)
    tables = [shards_folder(module, places) / key, places.folder]
    with storage_errors(folder), metadata_errors(task.name), ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        former = SHARD_RECORD.load(folder / (key + RECORD))
        if former and task.run and former.run == task.run:  # another copy was faster
            return former
        (folder / (key + RECORD)).unlink(missing_ok=True)
        tables[0].mkdir(parents=True, exist_ok=True)
        if not (tables[0] / "digests").exists():  # it was a part of another one
            tables += table_folders(module, places)
        stack.enter_context(alive(folder / (key + BEGAN)))
        tables[0] = stack.enter_context(_own_table(tables[0], folder))
        past, base = base_of(places, task.base)
        present_packs = places.repository / "objects" / "pack" if past else folder
        reader = TreeReader(module, places, BlockIndices(places.repository), tables=tables)
        pairs = bytearray()
        writer = stack.enter_context(opened_writer(folder, present_packs))
        tree, (totals, skipped), report, mounts, (view, open_groups, _) = reader.read_part(
            past,
            pairs.extend,
            writer,
            accept_mounts=task.accept_mounts,
            part=Part(path, [], None),
        )
        if path in module.engine.labels:  # a client of NFS sees another file system than the node
            view = 0, view[1]
        problems, remarks, hashed = report
        pack = writer.finish()
        done = ShardRecord(
            *(path, base, settings_of(module), __version__, task.run, view, tree, totals, skipped),
            *(problems, remarks, hashed, sorted(mounts), open_groups, bytes(pairs)),
            pack=os.fsdecode(pack) if pack else None,
            node=socket.gethostname(),
            seconds=time.monotonic() - began,
        )
        SHARD_RECORD.save(folder / (key + RECORD), done)
        return done


def scan(text: str) -> None:
    """Scan a shard, a `ShardTask` in JSON; for a process of an engine.

    Raises a `ScanError` if it vanished, and the other errors of `scan_shard`.
    """
    scan_shard(msgspec.json.decode(text, type=ShardTask))


def base_of(places: ModulePlaces, base: str | None) -> tuple[Snapshot | None, str]:
    """Return snapshot and hex id of the commit `base` (None: the newest); else None, `NO_BASE`."""
    if base == NO_BASE or not places.repository.exists():
        return None, NO_BASE
    repository = Repository(places.repository)
    head = repository.head_of(base) if base else repository.head()
    return (repository.snapshot(head)[1], head.commit) if head else (None, NO_BASE)


@contextmanager
def _own_table(table: Path, folder: Path) -> Iterator[Path]:
    """Yield the folder for digests: `table`, or a temporary one if another process uses that."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(table / "lock"))
        except LockedError:  # a copy of a process that was silent
            table = Path(stack.enter_context(TemporaryDirectory(dir=folder)))
        yield table
