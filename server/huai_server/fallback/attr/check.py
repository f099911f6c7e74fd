"""Comparing an attr tree with its commit, entry by entry.

Encodes each directory of the attr tree as a listing, and compares the bytes with the commit's.
Only listings that differ are decoded.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from pathlib import Path

from huai_program.locking import locked
from huai_schema.codec.listing import Listing
from huai_schema.diff.changes import differing
from huai_schema.entries import Entry
from huai_schema.layout.snapshot import Snapshot, decode_listing
from huai_schema.paths import RelPath, join, path_order, show
from huai_server.fallback.attr import generations
from huai_server.fallback.attr.state import STATE_FILE, AttrState
from huai_server.fallback.attr.tree import AttrTree
from huai_server.fallback.kind import UNLISTED, AttrTreeError
from huai_server.fallback.owners import OwnerIds
from huai_server.scan.native import reason_of, scan_directories
from huai_server.scan.types import LEFT_OUT, ScanOptions
from huai_server.state.errors import storage_errors
from huai_server.store.repository import Repository

_SHOWN = 20
_OWNERS = frozenset(("owner", "group"))


@dataclass(frozen=True, slots=True)
class AttrReport:
    """The result of comparing an attr tree with its commit."""

    commit: str
    """Hex id of the commit in the state of the attr tree."""
    entries: int
    differences: int
    shown: tuple[str, ...]  # prose: a key of the output


def check_attr_tree(tree: AttrTree, *, wait: float = 600.0) -> AttrReport:
    """Compare `tree` with its commit, without reading the mirrored tree.

    Raises `AttrTreeError` if the module has no attr tree.
    """
    fallback = tree.fallback
    with storage_errors(fallback.folder):
        if fallback.folder.is_dir():
            with locked(fallback.lock, wait=wait):
                state, head = STATE_FILE.load(fallback.state), tree.head()
                if state is not None and head is not None:
                    snapshot = state.snapshot(Repository(tree.places.repository), head)
                    return _Check(tree, state, snapshot).run()
    raise AttrTreeError(
        f"module {tree.name!r} has no attr tree",
        hint=f"run: huai-server fallback build {tree.name}",
    )


class _Check:
    def __init__(self, tree: AttrTree, state: AttrState, snapshot: Snapshot) -> None:
        self._module = tree.module
        self._fallback = tree.fallback
        self._state = state
        self._snapshot = snapshot
        self._ids = OwnerIds()
        self._faults: list[str] = []
        self._count = 0

    def run(self) -> AttrReport:
        """Compare the attr tree with its commit; return the faults."""
        self._check_links()
        entries = 0
        generation = self._fallback.generations / self._state.generation
        if generation.is_dir():
            pairs = _pairs(self._snapshot.listings(), self._actual_listings(generation))
            for expected, actual in pairs:
                if expected is not None:
                    entries += 1 + expected.leaves.count(b"\n")
                self._compare(expected, actual)
        return AttrReport(self._state.commit, entries, self._count, tuple(self._faults))

    def _check_links(self) -> None:
        """Add faults of the state, the links and the seal."""
        state, fallback = self._state, self._fallback
        if state.target is not None:
            self._fault(f"an update to {state.target} was interrupted")
        if generations.served_generation(fallback) != state.generation:
            self._fault(f"{fallback.tree}: does not name generation {state.generation}")
        elif not generations.is_sealed(fallback):
            self._fault(f"{fallback.seal}: the time of the root differs: it was changed by hand")
        if generations.target(fallback.real) != self._module.path:
            self._fault(f"{fallback.real}: does not name {self._module.path}")

    def _actual_listings(self, generation: Path) -> Iterator[Listing]:
        """Yield the listings of a generation; records what cannot be read as faults."""
        options = ScanOptions(owners=self._module.owners)
        listing: Listing | None = None
        for scanned in scan_directories(generation, options, links=True):
            path = RelPath(scanned[0])
            if len(scanned) == 2:
                self._fault(f"{show(path)}: {reason_of(scanned[1])}")
                continue
            for name, reason in scanned[6]:
                if reason_of(reason) not in LEFT_OUT:
                    self._fault(f"{show(join(path, name) if name else path)}: {reason_of(reason)}")
            if listing is not None and not scanned[1]:  # more of a large directory
                listing = listing._replace(leaves=listing.leaves + scanned[2])
                continue
            if listing is not None:
                yield listing
            listing = Listing(path, scanned[1], scanned[2])
        if listing is not None:
            yield listing

    def _compare(self, expected: Listing | None, actual: Listing | None) -> None:
        """Add the faults of a directory."""
        if expected and actual and expected[1:3] == actual[1:3]:
            return
        want, have = _entries(expected), _entries(actual)
        for path in sorted({*want, *have}, key=path_order):
            if path not in have:
                self._fault(f"{show(path)}: missing")
            elif path not in want:
                self._fault(f"{show(path)}: not in the commit")
            elif names := self._differing_names(want[path], have[path]):
                self._fault(f"{show(path)}: has another {', '.join(sorted(names))}")

    def _differing_names(self, want: Entry, have: Entry) -> frozenset[str]:
        """Return the attributes that differ; owners only if ids do and root could set them."""
        names = differing(want, have) - UNLISTED
        uid, gid = self._ids.uid, self._ids.gid
        # Several names may have one id.
        same = uid(want.owner) == uid(have.owner) and gid(want.group) == gid(have.group)
        return names - _OWNERS if same or os.geteuid() != 0 else names

    def _fault(self, text: str) -> None:
        """Count a fault, and keep the first `_SHOWN`."""
        self._count += 1
        if len(self._faults) < _SHOWN:
            self._faults.append(text)


def _pairs(
    expected: Iterable[Listing], actual: Iterable[Listing]
) -> Iterator[tuple[Listing | None, Listing | None]]:
    """Yield the expected and the actual listing of each directory; both come in tree order."""
    sides = ((False, each) for each in expected), ((True, each) for each in actual)
    merged = merge(*sides, key=lambda each: path_order(each[1].path))
    for _, group in groupby(merged, key=lambda each: each[1].path):
        pair = dict(group)
        yield pair.get(False), pair.get(True)


def _entries(listing: Listing | None) -> dict[RelPath, Entry]:
    """Return the entries by path, without digests."""
    if listing is None:
        return {}
    return {entry.path: entry for entry in decode_listing(listing._replace(digests=b""))}
