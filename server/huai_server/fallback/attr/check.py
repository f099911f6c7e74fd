"""Comparing an attr tree with its commit, entry by entry, by the engine."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from huai_native._native import TreeComparison
from huai_program.locking import locked
from huai_schema.codec.columns import BATCH, decode_batch
from huai_schema.codec.findings import (
    EXTRANEOUS,
    EXTRANEOUS_DIRECTORY,
    MATCH,
    MISSING,
    MOUNT_POINT,
    decode_records,
)
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, show
from huai_server.fallback.attr import generations
from huai_server.fallback.attr.state import STATE_FILE, AttrState
from huai_server.fallback.attr.tree import AttrTree
from huai_server.fallback.kind import AttrTreeError
from huai_server.fallback.owners import OwnerIds
from huai_server.state.errors import storage_errors
from huai_server.store.repository import Repository

_SHOWN = 20
_STEP = 1 << 16
_THREADS = min(8, os.cpu_count() or 1)
_MODES = ((0o7777, 0), (0o7777, 0), False)
"""All bits of a mode are compared."""


@dataclass(frozen=True, slots=True)
class AttrReport:
    """The result of comparing an attr tree with its commit."""

    commit: str
    """Hex id of the commit in the state of the attr tree."""
    entries: int
    """The number of compared entries."""
    differences: int
    """The number of faults, those of the links of the attr tree included."""
    shown: tuple[str, ...]  # prose: a key of the output


def check_attr_tree(tree: AttrTree, *, wait: float = 600.0) -> AttrReport:
    """Compare `tree` with its commit, without reading the mirrored tree.

    Raises `AttrTreeError` without an attr tree, and `LockedError` after `wait` seconds.
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
    """One comparison; the caller holds the attr tree's lock."""

    def __init__(self, tree: AttrTree, state: AttrState, snapshot: Snapshot) -> None:
        self._module = tree.module
        self._fallback = tree.fallback
        self._state = state
        self._snapshot = snapshot
        self._faults: list[str] = []
        self._count = 0

    def run(self) -> AttrReport:
        """Compare the attr tree with its commit; return the number of faults and the first ones."""
        self._check_links()
        count = 0
        generation = self._fallback.generations / self._state.generation
        if generation.is_dir():
            count = self._compare(generation)
        return AttrReport(self._state.commit, count, self._count, tuple(self._faults))

    def _check_links(self) -> None:
        """Record an interrupted update, wrong links, and a root changed since it was sealed."""
        state, fallback = self._state, self._fallback
        if state.target is not None:
            self._fault(f"an update to {state.target} was interrupted")
        if generations.served_generation(fallback) != state.generation:
            self._fault(f"{fallback.tree}: does not name generation {state.generation}")
        elif not generations.is_sealed(fallback):
            self._fault(f"{fallback.seal}: the time of the root differs: it was changed by hand")
        if generations.target(fallback.real) != self._module.path:
            self._fault(f"{fallback.real}: does not name {self._module.path}")

    def _compare(self, generation: Path) -> int:
        """Add the faults of a generation; return the number of expected entries."""
        snapshot, ids, handle = self._snapshot, OwnerIds(), os.open(generation, os.O_DIRECTORY)
        try:
            comparison = TreeComparison(
                handle,
                (snapshot.reader, snapshot.limit, (b"", snapshot.tree, True)),
                ([], _MODES),
                scope=(b"", set(), b""),
                owners=(ids.uid, ids.gid) if os.geteuid() == 0 else None,  # only root sets them
                content=False,
                opens_up=False,
                threads=_THREADS,
            )
            count, ended = 0, False
            while not ended:
                records, text, batch, (compared, *_), _, ended = comparison.batch(BATCH, _STEP)
                count += compared
                expected = (
                    (entry.path for _, entry, _ in decode_batch(batch)) if batch else iter(())
                )
                for path, fault in _faults(records, text, expected):
                    self._fault(f"{show(path)}: {fault}")
            return count
        finally:
            os.close(handle)

    def _fault(self, text: str) -> None:
        """Count a fault, and keep the first `_SHOWN`."""
        self._count += 1
        if len(self._faults) < _SHOWN:
            self._faults.append(text)


def _faults(
    records: bytes, text: bytes, expected: Iterator[RelPath]
) -> Iterator[tuple[bytes, str]]:
    """Yield the path and the fault of each finding of the engine."""
    for record, path in decode_records(records, text):
        if record.kind == MATCH:
            yield next(expected), f"has another {', '.join(sorted(record.names))}"
        elif record.kind == MISSING:
            yield from ((next(expected), "missing") for _ in range(record.missing))
        elif record.kind in (EXTRANEOUS, EXTRANEOUS_DIRECTORY):
            yield path, "not in the commit"
        elif record.errno == MOUNT_POINT:
            yield path, "a file system is mounted there"
        else:
            yield path, os.strerror(record.errno)
