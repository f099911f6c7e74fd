"""Making a whole attr tree from a snapshot.

Streams: memory does not grow with the tree.  Records of one part are packed while the maker,
without Python's lock, works on those of the part before.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from huai_schema.codec.lines import decode_directory
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, parent
from huai_server.fallback.owners import OwnerIds
from huai_server.fallback.sparse.records import Maker, Records

if TYPE_CHECKING:
    from huai_schema.entries import Directory

_PART_BYTES = 512 << 10


def build_tree(folder: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
    """Fill `folder`, which does not exist; returns how many entries did not get their owner."""
    folder.mkdir(mode=0o700)
    with Maker(folder) as maker, ThreadPoolExecutor(1) as thread:
        running = thread.submit(maker.apply, b"")
        for part in _parts(snapshot, Records(owners)):
            running.result()
            running = thread.submit(maker.apply, part)
        running.result()
        return maker.unowned


def _parts(snapshot: Snapshot, records: Records) -> Iterator[bytes]:
    unfinished: list[Directory] = []
    for listing in snapshot.listings():
        directory = decode_directory(listing.path, listing.attributes)
        # Attributes come last: a mode may shut out the owner, and each new name changes the time.
        while unfinished and unfinished[-1].path != parent(directory.path):
            records.attributes(unfinished.pop())
        unfinished.append(directory)
        if directory.path != ROOT:
            records.directory(directory)
        if listing.leaves:
            records.leaves(listing)
        if records.size > _PART_BYTES:
            yield records.take()
    for directory in reversed(unfinished):
        records.attributes(directory)
    yield records.take()
