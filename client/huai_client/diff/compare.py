"""The comparison of what is there with what should be, by the engine: only differences come.

Compares attributes only.  Memory grows with the largest directory, the depth and the number of
hardlink groups, not with the tree.  A path that cannot be read is reported (`Unreadable`), never
taken for absent.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from errno import EACCES
from functools import cache, partial
from itertools import islice
from struct import Struct
from typing import NamedTuple, TypeAlias

from huai_client.diff.selection import Selection
from huai_client.diff.table import CandidateTable
from huai_client.filters.rules import Rules
from huai_client.tree import PathError, View
from huai_client.tree.errors import path_error
from huai_client.tree.local_entry import Unreadable
from huai_client.tree.scope import WHOLE, Scope
from huai_native import _native
from huai_schema.codec import columns
from huai_schema.codec.listing import Listing
from huai_schema.entries import Entry
from huai_schema.paths import ROOT, RelPath

_RECORD = Struct("<BBxxIiQ")
"""The fields of a `_Record`."""
_MATCH, _MISSING, _EXTRANEOUS, _EXTRANEOUS_DIRECTORY, _UNREADABLE_DIRECTORY = 1, 2, 3, 4, 6
_ATTRIBUTES = ("type", "size", "mtime", "mode", "owner", "group", "target", "link")
_MOUNT_POINT = -1
_THREADS = min(8, os.cpu_count() or 1)
STEP = 1 << 16
"""Entries that are compared in one step."""


class Match(NamedTuple):
    """A path that is there and should be; `attributes` differ (empty: all are right)."""

    wanted: Entry
    attributes: frozenset[str]


class Missing(NamedTuple):
    """A path that should be there, and is not."""

    wanted: Entry


class Extraneous(NamedTuple):
    """A path that is there, and should not be."""

    path: RelPath
    directory: bool


Rest: TypeAlias = Extraneous | Unreadable
Finding: TypeAlias = Match | Missing | Rest


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


class _Record(NamedTuple):
    """A record of the engine about one path, or about several that are missing."""

    kind: int
    attributes: int
    """One bit for each of `_ATTRIBUTES` that differs."""
    text_end: int
    errno: int
    missing: int
    """How many entries are."""


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
        protected: Rules | None = None,
        content: bool = False,
    ) -> None:
        """Compare with `part` of the selection; None: with all of it.

        Paths that `protected` excludes are not wanted.  With `content` there is a `Match` for each
        file that is to be read, even if its attributes are right.
        """
        snapshot, rules, owners = selection.snapshot, selection.rules, view.owners
        wanted, scope = part or Part((ROOT, snapshot.tree, True))
        filters = [rules.table] if protected is None else [rules.table, protected.table]
        self._view = view
        self._modes = rules.modes
        self._top = scope.top
        self._engine = _native.TreeComparison(
            view.handle,
            (snapshot.reader, snapshot.limit, wanted),
            (filters, rules.modes.table),
            scope=scope,
            owners=(owners.user, owners.group) if owners else None,
            content=content,
            opens_up=view.opens_up,
            threads=_THREADS,
        )
        self._again = partial(TreeComparison, view, selection, protected=protected, content=content)
        self._snapshot = snapshot

    def steps(self, *, size: int | None = None) -> Iterator[Compared]:
        """Compare on, `size` entries in each step (None: as many as a moment allows)."""
        ended = False
        while not ended:
            found = self._engine.batch(columns.BATCH, size or STEP)
            records, text, wanted, totals, order, ended = found
            yield Compared(self._findings(records, text, wanted), *totals, order)

    def put_into(
        self, table: CandidateTable, tick: Callable[[], None] = _nothing
    ) -> Iterator[Rest]:
        """Compare all: what is missing or differs is added to `table` in tree order.

        `tick` is called ten times a second, and may raise to end the comparison.  A directory that
        may not be looked into is opened up, if the view does that.
        """
        ended = False
        while not ended:
            records, text, ended = self._engine.put_into(table.engine, STEP, tick)
            tick()
            for record, said in _records(records, text):
                if self._opens_up(record, said):
                    yield from self._below(RelPath(said)).put_into(table, tick)
                else:
                    yield _rest(record, said)

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
        for record, said in _records(records, text):
            if record.kind == _MISSING:
                yield from map(Missing, islice(wanted, record.missing))
            elif record.kind == _MATCH:
                yield Match(next(wanted), _attributes(record.attributes))
            else:
                yield _rest(record, said)

    def _opens_up(self, record: _Record, path: bytes) -> bool:
        """Whether a directory was closed and is open now; one that was opened up is not again."""
        closed = record.kind == _UNREADABLE_DIRECTORY and record.errno == EACCES
        return closed and path != self._top and self._view.open_up(RelPath(path))

    def _below(self, top: RelPath) -> "TreeComparison":
        """The comparison of what is in a directory; that itself was compared as it was."""
        tree = self._snapshot.own_tree(top)
        wanted = [*self._snapshot.subtree(top)] if tree is None else (top, tree, True)
        return self._again(Part(wanted, Scope.inside(top)))


@cache
def _attributes(bits: int) -> frozenset[str]:
    """The names of the attributes that differ."""
    return frozenset(name for bit, name in enumerate(_ATTRIBUTES) if bits >> bit & 1)


def _records(records: bytes, text: bytes) -> Iterator[tuple[_Record, bytes]]:
    """Each record and its text."""
    begin = 0
    for record in map(_Record._make, _RECORD.iter_unpack(records)):
        yield record, text[begin : record.text_end]
        begin = record.text_end


def _rest(record: _Record, path: bytes) -> Rest:
    """Raises `StorageError` as `_unreadable`."""
    if record.kind in (_EXTRANEOUS, _EXTRANEOUS_DIRECTORY):
        return Extraneous(RelPath(path), directory=record.kind == _EXTRANEOUS_DIRECTORY)
    directory = record.kind == _UNREADABLE_DIRECTORY
    return _unreadable(RelPath(path), record.errno, directory=directory)


def _unreadable(path: RelPath, code: int, *, directory: bool) -> Unreadable:
    """Raises `StorageError` where the whole file system is at fault."""
    if code == _MOUNT_POINT:
        reason = "on another file system or in a bind mount, which is not entered"
        return Unreadable(path, reason, directory=directory)
    error = path_error(path, code)
    if not isinstance(error, PathError):
        raise error
    return Unreadable(path, error.reason, directory=directory)
