"""Making a whole attr tree from a snapshot.

Streams: memory does not grow with the tree.  Records of one part are packed while the maker,
without Python's lock, works on those of the part before.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self

from huai_schema.codec.lines import decode_directory
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, parent
from huai_server.fallback.attr.maker import Maker
from huai_server.fallback.attr.records import Records
from huai_server.fallback.owners import OwnerIds

if TYPE_CHECKING:
    from concurrent.futures import Future

    from huai_schema.entries import Directory

_PART_BYTES = 512 << 10


def build_tree(folder: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
    """Fill `folder`, which does not exist; returns how many entries did not get their owner."""
    folder.mkdir(mode=0o700)
    records = Records(owners)
    unfinished: list[Directory] = []
    with Maker(folder) as maker:
        with _Pipeline(maker) as pipeline:
            for listing in snapshot.listings():
                directory = decode_directory(listing.path, listing.attributes)
                # Attributes come last: a mode may shut out the owner, and each new name changes
                # the time.
                while unfinished and unfinished[-1].path != parent(directory.path):
                    records.attributes(unfinished.pop())
                unfinished.append(directory)
                if directory.path != ROOT:
                    records.enter(parent(directory.path))
                    records.directory(directory)
                if listing.leaves:
                    records.enter(directory.path)
                    records.leaves(listing)
                if records.size > _PART_BYTES:
                    pipeline.put(records.take())
            for directory in reversed(unfinished):
                records.attributes(directory)
            pipeline.put(records.take())
        return maker.unowned


class _Pipeline:
    """The maker works on one batch of records while the next one is packed."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._thread = ThreadPoolExecutor(1)
        self._running: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def put(self, part: bytes) -> None:
        self._wait()
        self._running = self._thread.submit(self._maker.apply, part)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._wait()
        finally:
            self._thread.shutdown()

    def _wait(self) -> None:
        if self._running is not None:
            self._running.result()
