"""The engine's comparison of the local tree with a selection: it yields differences only.

Compares attributes only.  Memory grows with the largest directory, the depth and the number of
hardlink groups, not with the tree.  A path that cannot be read is reported (`Unreadable`), never
taken for absent.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from errno import EACCES
from functools import partial
from itertools import islice
from typing import NamedTuple, Self, TypeAlias

from huai_client.diff.selection import Selection
from huai_client.diff.table import CandidateTable
from huai_client.filters.rules import Rules
from huai_client.tree import PathError, View
from huai_client.tree.errors import path_error
from huai_client.tree.view import Unreadable
from huai_native import _native
from huai_schema.codec import columns
from huai_schema.codec.findings import (
    EXTRANEOUS,
    EXTRANEOUS_DIRECTORY,
    MATCH,
    MISSING,
    MOUNT_POINT,
    UNREADABLE_DIRECTORY,
    Record,
    decode_records,
)
from huai_schema.codec.listing import Listing
from huai_schema.entries import Entry
from huai_schema.paths import ROOT, RelPath, tree_order


class Scope(NamedTuple):
    """A path with everything below it, without some subdirectories."""

    top: RelPath = ROOT
    left_out: frozenset[RelPath] = frozenset()
    """Paths to leave out, with everything below them."""
    after: bytes = b""
    """A key of `tree_order`: only paths after it are in the scope."""

    @classmethod
    def inside(cls, top: RelPath) -> Self:
        """Return the scope of everything below the directory `top`, without `top` itself."""
        # The keys of a directory's content begin with its own key, and are greater than this one.
        return cls(top, after=tree_order(top, directory=True) + b"\0")


WHOLE = Scope()


_MOUNTED = "on another file system or in a bind mount, which is not entered"
_THREADS = min(8, os.cpu_count() or 1)
STEP = 1 << 16
"""The number of entries to compare in one step."""


class Match(NamedTuple):
    """A path that exists and should; `attributes` are the names of those that differ."""

    expected: Entry
    attributes: frozenset[str]
    has_seen_digest: bool = False
    """True if the digest in `expected` was seen when the file arrived, and is not stated."""


class Missing(NamedTuple):
    """A path that should exist and does not."""

    expected: Entry


class Extraneous(NamedTuple):
    """A path that exists and should not."""

    path: RelPath
    directory: bool


Rest: TypeAlias = Extraneous | Unreadable
Finding: TypeAlias = Match | Missing | Rest


class Compared(NamedTuple):
    """One step of a comparison: its findings, counts, and the position up to which it reaches."""

    findings: Iterator[Finding]
    """In tree order, except that extraneous leaves come after the directories next to them.

    One of those may be expected under the leaf's name, which is one finding: a `Match` with the
    attribute "type"."""
    entries: int
    """The number of expected entries that were compared."""
    files: int
    """The number of regular files among them."""
    undigested: int
    """The number of these files without a digest."""
    order: bytes
    """The key of `paths.tree_order` up to which all was compared; empty at the beginning."""


class ComparedPart(NamedTuple):
    """The part of a snapshot to compare a tree with."""

    expected: tuple[RelPath, bytes, bool] | Sequence[Listing]
    """Path and tree of an own directory, and True to include those below it; or listings."""
    scope: Scope = WHOLE


class TreeComparison:
    """The comparison of a tree with a selection."""

    def __init__(
        self,
        view: View,
        selection: Selection,
        part: ComparedPart | None = None,
        *,
        protected: Rules | None = None,
        content: bool = False,
    ) -> None:
        """Compare with `part` of the selection, or with all of it.

        Paths that `protected` excludes are not expected.  With `content` each file to read gives a
        `Match`, even if its attributes are right.
        """
        snapshot, rules, owners = selection.snapshot, selection.rules, view.owners
        expected, scope = part or ComparedPart((ROOT, snapshot.tree, True))
        filters = [rules.table] if protected is None else [rules.table, protected.table]
        self._view = view
        self._modes = rules.modes
        self._top = scope.top
        self._engine = _native.TreeComparison(
            view.handle,
            (snapshot.reader, snapshot.limit, expected),
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
        """Yield the next steps of the comparison, with `size` entries each (default: `STEP`)."""
        ended = False
        while not ended:
            batch = self._engine.batch(columns.BATCH, size or STEP)
            records, text, expected, totals, order, ended = batch
            yield Compared(self._findings(records, text, expected), *totals, order)

    def put_into(
        self, table: CandidateTable, tick: Callable[[], None] = lambda: None
    ) -> Iterator[Rest]:
        """Add missing and differing paths to `table` in tree order; yield the other findings.

        `tick` is called ten times a second, and may raise to end the comparison.  A directory
        without the needed permissions is opened up, if the view does that.  Raises `StorageError`
        if the file system fails.
        """
        ended = False
        while not ended:
            records, text, ended = self._engine.put_into(table.engine, STEP, tick)
            tick()
            for record, path in decode_records(records, text):
                if self._try_open_up(record, path):
                    yield from self._below(RelPath(path)).put_into(table, tick)
                else:
                    yield _rest(record, path)

    def extraneous(self, is_expected: Callable[[RelPath], bool]) -> Iterator[Extraneous]:
        """Return the extraneous leaves not yet reported, except those that `is_expected` accepts.

        Those that are returned count as reported.
        """
        leaves = [path for path in map(RelPath, self._engine.waiting()) if not is_expected(path)]
        self._engine.forget({*leaves})
        return (Extraneous(path, directory=False) for path in leaves)

    def _findings(
        self, records: bytes, text: bytes, batch: columns.Batch | None
    ) -> Iterator[Finding]:
        """Decode the engine's records; `batch` has their expected entries."""
        entries = (entry for _, entry, _ in columns.decode_batch(batch)) if batch else ()
        expected = map(self._modes.of, entries)
        for record, path in decode_records(records, text):
            if record.kind == MISSING:
                yield from map(Missing, islice(expected, record.missing))
            elif record.kind == MATCH:
                yield Match(next(expected), record.names)
            else:
                yield _rest(record, path)

    def _try_open_up(self, record: Record, path: bytes) -> bool:
        """Give an unreadable directory below the top u+rwx, if the view may; return True if so."""
        closed = record.kind == UNREADABLE_DIRECTORY and record.errno == EACCES
        return closed and path != self._top and self._view.open_up(RelPath(path))

    def _below(self, top: RelPath) -> "TreeComparison":
        """Return the comparison of a directory's content; the directory itself was compared."""
        tree = self._snapshot.own_tree(top)
        expected = [*self._snapshot.subtree(top)] if tree is None else (top, tree, True)
        return self._again(ComparedPart(expected, Scope.inside(top)))


def _rest(record: Record, path: bytes) -> Rest:
    """Return the finding for a record; raises `StorageError` if the file system failed."""
    if record.kind in (EXTRANEOUS, EXTRANEOUS_DIRECTORY):
        return Extraneous(RelPath(path), directory=record.kind == EXTRANEOUS_DIRECTORY)
    directory, reason = record.kind == UNREADABLE_DIRECTORY, _MOUNTED
    if record.errno != MOUNT_POINT:
        error = path_error(RelPath(path), record.errno)
        if not isinstance(error, PathError):
            raise error
        reason = error.reason
    return Unreadable(RelPath(path), reason, directory=directory)
