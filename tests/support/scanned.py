"""A whole tree as the reader of a commit sees it, for tests to compare."""

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_server.commit.tree_reader import TreeReader
from huai_server.config.tables import Module
from huai_server.scan.types import ScanOptions
from huai_server.state.paths import module_places
from huai_server.store.block_indices import BlockIndices
from tests.support.schema.memory import MemoryObjects


class Scanned(NamedTuple):
    """A tree that was scanned."""

    entries: dict[RelPath, Entry]
    """All entries in tree order; hardlinks as files of their own."""
    problems: dict[RelPath, str]
    """The reasons of paths that could not be read."""
    remarks: Counter[str]
    """The number of paths of each kind."""
    skipped: int
    """The number of devices, sockets, fifos and over-long paths: no snapshot can hold them."""

    @property
    def directories(self) -> list[RelPath]:
        return [path for path, entry in self.entries.items() if isinstance(entry, Directory)]

    @property
    def leaves(self) -> dict[RelPath, File | Symlink]:
        return {
            path: entry for path, entry in self.entries.items() if not isinstance(entry, Directory)
        }


def scan(root: Path, options: ScanOptions | None = None) -> Scanned:
    """Scan `root`, whose unreadable directories are missing."""
    snapshot, scanned = scan_snapshot(root, options or ScanOptions())
    entries = (
        entry._replace(link=None) if isinstance(entry, File) else entry
        for entry in snapshot.entries()
    )
    return scanned._replace(entries={entry.path: entry for entry in entries})


def listings(root: Path, options: ScanOptions | None = None) -> list[Listing]:
    """Return the listings of a tree."""
    return [*scan_snapshot(root, options or ScanOptions())[0].listings()]


def scan_snapshot(root: Path, options: ScanOptions) -> tuple[Snapshot, Scanned]:
    """Scan a tree, and return its snapshot, and the rest of the result without entries."""
    module = Module(
        path=os.fsdecode(root),
        digest="off",
        exclude=tuple(map(os.fsdecode, options.exclude)),
        one_file_system=options.one_file_system,
        owners=options.owners,
        check_readable=False,
    )
    objects = MemoryObjects()
    with tempfile.TemporaryDirectory() as folder:
        places = module_places(Path(folder), "m")
        reader = TreeReader(module, places, BlockIndices(places.repository))
        read = reader.read_whole(None, lambda _: None, objects, accept_mounts=True)  # type: ignore[arg-type]
    problems = {problem.path: problem.reason for problem in read.problems}
    remarks = Counter({remark.kind: remark.number for remark in read.remarks})
    skipped = read.skipped - remarks.total()
    return Snapshot(objects, read.tree), Scanned({}, problems, remarks, skipped)
