"""What is there against what should be, as the engine compares it: only what differs comes here.

Compares attributes only.  Memory grows with the largest directory, the depth and the number of
hardlink groups, not with the tree.  A path that cannot be read is reported (`Unreadable`), never
taken for absent.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from errno import EACCES
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeAlias

from huai_client.diff.selection import Selection
from huai_client.filters.rules import Rules
from huai_client.tree import PathError, View
from huai_client.tree.errors import path_error
from huai_client.tree.local_entry import LocalEntry, Unreadable
from huai_client.tree.observed import MATCH, MISSING, RECORD, Record, attributes, seen
from huai_client.tree.owners import Owners
from huai_client.tree.scope import WHOLE, Scope
from huai_native import _native
from huai_schema.codec import columns
from huai_schema.codec.listing import Listing
from huai_schema.entries import Entry
from huai_schema.paths import ROOT, RelPath

_EXTRANEOUS, _EXTRANEOUS_DIRECTORY, _UNREADABLE_DIRECTORY = 3, 4, 6
_MOUNT_POINT = -1
_THREADS = min(8, os.cpu_count() or 1)
STEP = 1 << 16
"""Entries that are compared in one step."""


class Match(NamedTuple):
    """A path that is there and should be; `attributes` differ (empty: all are right)."""

    wanted: Entry
    observed: LocalEntry
    attributes: frozenset[str]


class Missing(NamedTuple):
    """A path that should be there, and is not."""

    wanted: Entry


class Extraneous(NamedTuple):
    """A path that is there, and should not be."""

    path: RelPath
    directory: bool


Finding: TypeAlias = Match | Missing | Extraneous | Unreadable


class Compared(NamedTuple):
    """One step of a comparison."""

    findings: Iterator[Finding]
    """In tree order, but for extraneous leaves, which come after the directories beside them: one
    of those may be wanted under the extraneous leaf's name, and that is one finding, a `Match` with
    the attribute "type"."""
    entries: int
    """How many entries that should be there were compared."""
    files: int
    """How many of them are regular files."""
    undigested: int
    """How many of these have no digest."""
    order: bytes
    """The key of `paths.tree_order` up to which all was compared; empty: nothing was yet."""


class Part(NamedTuple):
    """The part of a snapshot with which a tree is compared."""

    wanted: tuple[RelPath, bytes, bool] | Sequence[Listing]
    """Path and tree of an own directory, and whether with those below it; or listings."""
    scope: Scope = WHOLE


def _nothing() -> None:
    pass


class TreeComparison:
    """The comparison of a tree with a selection."""

    def __init__(
        self,
        view: View,
        selection: Selection,
        part: Part | None = None,
        *,
        owners: Owners | None,
        protected: Rules | None = None,
        content: bool = False,
    ) -> None:
        """Compare with `part` of the selection; None: with all of it.

        Without `owners` no owner differs.  Paths that `protected` excludes are not wanted.  With
        `content` there is a `Match` for each file that is to be read, even if its attributes are
        right.
        """
        snapshot, rules = selection.snapshot, selection.rules
        wanted, scope = part or Part((ROOT, snapshot.tree, True))
        filters = [rules.table] if protected is None else [rules.table, protected.table]
        self._view = view
        self._modes = rules.modes
        self._engine = _native.TreeComparison(
            view.handle,
            (snapshot.reader, snapshot.limit, wanted),
            (filters, rules.modes.table),
            scope=scope,
            owners=None if owners is None else (owners.user, owners.group),
            content=content,
            opens_up=view.opens_up,
            threads=_THREADS,
        )
        self._below = partial(
            TreeComparison, view, selection, owners=owners, protected=protected, content=content
        )
        self._snapshot = snapshot

    def steps(
        self, tick: Callable[[], None] = _nothing, *, size: int | None = None
    ) -> Iterator[Compared]:
        """Compare on, `size` entries in each step (None: as many as a moment allows).

        `tick` is called ten times a second, and may raise to end the comparison.
        """
        ended = False
        while not ended:
            found = self._engine.batch(columns.BATCH, size or STEP, tick)
            records, text, wanted, totals, order, ended = found
            tick()
            yield Compared(self._findings(records, text, wanted), *totals, order)

    def findings(self, tick: Callable[[], None] = _nothing) -> Iterator[Finding]:
        """All findings; `tick` as above."""
        for step in self.steps(tick):
            yield from step.findings

    def extraneous(self, wanted: Callable[[RelPath], bool]) -> Iterator[Extraneous]:
        """The extraneous leaves that are not reported yet, without those that are `wanted`."""
        found = [path for path in map(RelPath, self._engine.waiting()) if not wanted(path)]
        self._engine.forget({*found})
        return (Extraneous(path, directory=False) for path in found)

    def _findings(
        self, records: bytes, text: bytes, batch: columns.Batch | None
    ) -> Iterator[Finding]:
        found = (entry for _, entry, _ in columns.entries(batch)) if batch else ()
        wanted = map(self._modes.of, found)
        begin = 0
        for record in map(Record._make, RECORD.iter_unpack(records)):
            said, begin = text[begin : record.text_end], record.text_end
            kind = record.kind
            if kind == MISSING:
                yield from map(Missing, islice(wanted, record.size))
            elif kind == MATCH:
                entry = next(wanted)
                here = seen(entry.path, record, said, self._view.names)
                yield Match(entry, here, attributes(record.attributes))
            elif kind in (_EXTRANEOUS, _EXTRANEOUS_DIRECTORY):
                yield Extraneous(RelPath(said), directory=kind == _EXTRANEOUS_DIRECTORY)
            elif kind == _UNREADABLE_DIRECTORY:
                path = RelPath(said)
                if record.errno == EACCES and self._view.open_up(path):
                    yield from self._opened_up(path)
                else:
                    yield _unreadable(path, record.errno, directory=True)
            else:
                yield _unreadable(RelPath(said), record.errno, directory=False)

    def _opened_up(self, top: RelPath) -> Iterator[Finding]:
        """What is below a directory that could not be looked into before."""
        tree = self._snapshot.own_tree(top)
        wanted = [*self._snapshot.subtree(top)] if tree is None else (top, tree, True)
        for finding in self._below(Part(wanted, Scope(top))).findings():
            # The directory itself was compared, with the mode that it had.
            if _path(finding) != top:
                yield finding


def _path(finding: Finding) -> RelPath:
    return finding.wanted.path if isinstance(finding, Match | Missing) else finding.path


def _unreadable(path: RelPath, code: int, *, directory: bool) -> Unreadable:
    """Raises `StorageError` where the whole file system is at fault."""
    if code == _MOUNT_POINT:
        reason = "on another file system, which is not entered"
        return Unreadable(path, reason, directory=directory)
    error = path_error(path, code)
    if not isinstance(error, PathError):
        raise error
    return Unreadable(path, error.reason, directory=directory)
