"""The part of a snapshot that a filter includes, with the modes of a policy; its size.

Reads objects only, and no manifests of excluded directories.
Rule to keep: an entry of a selection depends only on the rules and the entry of the snapshot, so
the cost of comparing two selections grows with the difference between their snapshots.  So a
hardlink whose leader is excluded becomes a separate file.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple, Self

from huai_client.filters.rules import Rules
from huai_schema.codec.commits import Totals
from huai_schema.codec.listing import Listing
from huai_schema.diff.changes import Change, Moved
from huai_schema.diff.diff import Difference, diff
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.layout.snapshot import Snapshot, decode_listing
from huai_schema.paths import ROOT, RelPath, ancestors, parent


class Selection:
    """A snapshot seen through a filter and a policy for modes, with the methods of a snapshot.

    A hardlink whose leader is excluded is a file of its own.
    """

    def __init__(self, snapshot: Snapshot, rules: Rules) -> None:
        self.snapshot = snapshot
        self.rules = rules

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in tree order."""
        return self.entries_below(ROOT)

    def entries_below(self, path: RelPath) -> Iterator[Entry]:
        """Yield the directory at `path` and everything in it; nothing if it is excluded."""
        return chain.from_iterable(map(self._entries_of, self.listings(path)))

    def symlinks(self) -> Iterator[Symlink]:
        """Yield all symlinks; decodes only directories that hold any."""
        for listing in self.listings():
            if b"\t>" in listing.leaves:
                entries = self._entries_of(listing)
                yield from (entry for entry in entries if isinstance(entry, Symlink))

    def linked(self, below: RelPath = ROOT) -> Iterator[Entry]:
        """Yield all entries of each directory at or below `below` that may hold hardlinks."""
        for listing in self.listings(below):
            if b"\th" in listing.leaves:
                yield from self._entries_of(listing)

    def entry(self, path: RelPath) -> Entry | None:
        """Return the entry at `path`; None if it is missing or excluded."""
        return self.filter_entry(self.snapshot.entry(path))

    def entries_at(self, paths: Iterable[RelPath]) -> dict[RelPath, Entry]:
        """Return the entries that exist at `paths`; reads each directory once."""
        filtered = map(self.filter_entry, entries_at(self.snapshot, paths).values())
        return {entry.path: entry for entry in filtered if entry is not None}

    def directory(self, path: RelPath) -> Directory | None:
        """Return the directory at `path`; None if it is missing or excluded."""
        if not self.rules.reaches(path, directory=True):
            return None
        directory = self.snapshot.directory(path)
        return None if directory is None else self.rules.modes.of_directory(directory)

    def filter_entry(self, entry: Entry | None) -> Entry | None:
        """Return an entry of the snapshot as the selection has it; None if it is excluded."""
        selected = self.rules.select(entry)
        return None if selected is None else self.rules.modes.of(selected)

    def listings(self, below: RelPath = ROOT) -> Iterator[Listing]:
        """Yield the included directories, each with all leaves of the snapshot."""
        return self.snapshot.subtree(below, self.rules.table)

    def _entries_of(self, listing: Listing) -> Iterator[Entry]:
        return map(self.rules.modes.of, decode_listing(listing, self.rules.table))


class Extent(NamedTuple):
    """The number of entries and bytes of one selection."""

    entries: int
    bytes: int
    """The sum of file sizes; a hardlink group counts once for each name, as in commit totals."""

    @classmethod
    def of_totals(cls, totals: Totals) -> Self:
        """Return the extent by the totals of a commit, which is right without a filter."""
        return cls(totals.entries, totals.bytes)

    @classmethod
    def of(cls, selection: Selection) -> Self:
        """Count the entries and bytes of `selection`."""
        entries = size = 0
        for entry in selection.entries():
            entries += 1
            size += _size(entry)
        return cls(entries, size)

    def after(self, steps: Iterable[Difference]) -> Self:
        """Return the extent of the selection once `steps` are made; a move changes nothing."""
        entries, size = self
        for step in steps:
            if isinstance(step, Change):
                entries += (step.new is not None) - (step.old is not None)
                size += _size(step.new) - _size(step.old)
        return type(self)(entries, size)


def entries_at(snapshot: Snapshot, paths: Iterable[RelPath]) -> dict[RelPath, Entry]:
    """Return the entries of a snapshot that exist at `paths`; reads each directory once."""
    by_folder: dict[RelPath, set[RelPath]] = {}
    for path in paths:
        by_folder.setdefault(parent(path), set()).add(path)
    entries: dict[RelPath, Entry] = {}
    for folder, inside in sorted(by_folder.items()):
        listing = snapshot.listing(folder)
        leaves = decode_listing(listing) if listing else ()
        selected_leaves = {entry.path: entry for entry in leaves if entry.path in inside}
        entries.update(selected_leaves)
        for path in inside - selected_leaves.keys():
            if directory := snapshot.directory(path):
                entries[path] = directory
    return entries


def _size(entry: Entry | None) -> int:
    return entry.size if isinstance(entry, File) else 0


def diff_selections(past: Selection, target: Selection) -> Iterator[Difference]:
    """Yield the differences that lead from `past` to `target`, as `diff` does for snapshots.

    With one filter for both, the cost grows with the difference between the snapshots; with two
    filters the metadata of everything that one of them includes is read.

    A moved directory is one step, before the differences in it, if the filter is the same and
    treats both places alike; otherwise it comes entry by entry.
    """
    if past.rules != target.rules:
        yield from _across_filters(past, target)
        return
    split_moves = _SplitMoves()
    for difference in diff(past.snapshot, target.snapshot):
        if isinstance(difference, Moved) and _moves_whole(difference, target.rules):
            yield difference
        elif not split_moves.covers(difference):
            yield from _by_entry(difference, past, target)


def _across_filters(past: Selection, target: Selection) -> Iterator[Change]:
    """Yield the differences of the snapshots, then those that only the rules make.

    A moved directory comes entry by entry.  If the former policy left modes to this machine, each
    entry of `target` is yielded, even if both sides are equal: the tree may differ there.
    """
    modes_unknown = past.rules.modes.may_differ_from(target.rules.modes)
    reported: set[bytes] = set()
    split_moves = _SplitMoves()
    for difference in diff(past.snapshot, target.snapshot):
        if split_moves.covers(difference):
            continue
        if isinstance(difference, Change):
            reported.add(difference.path)
        else:
            below = target.snapshot.subtree(difference.new)
            reported.update(entry.path for listing in below for entry in decode_listing(listing))
        yield from _by_entry(difference, past, target)
    for listing in target.snapshot.subtree(ROOT, past.rules.table, target.rules.table):
        for entry in decode_listing(listing):
            if entry.path not in reported:
                change = Change(entry.path, past.filter_entry(entry), target.filter_entry(entry))
                if change.old != change.new or (modes_unknown and change.new):
                    yield change


class _SplitMoves:
    """The moved directories that were reported entry by entry."""

    def __init__(self) -> None:
        self._new: set[RelPath] = set()

    def covers(self, difference: Difference) -> bool:
        """Return True for a change at or below the new path of a move given before.

        That was reported with the move.  For a move, records it and returns False.
        """
        if isinstance(difference, Moved):
            self._new.add(difference.new)
            return False
        path = difference.path
        return bool(self._new) and not self._new.isdisjoint((path, *ancestors(path)))


def _by_entry(difference: Difference, past: Selection, target: Selection) -> Iterator[Change]:
    """Yield the selected changes of a difference; a moved directory becomes its entries."""
    if isinstance(difference, Change):
        old, new = past.filter_entry(difference.old), target.filter_entry(difference.new)
        if old is not None or new is not None:
            yield Change(difference.path, old, new)
        return
    for entry in past.entries_below(difference.old):
        yield Change(entry.path, entry, None)
    for entry in target.entries_below(difference.new):
        yield Change(entry.path, None, entry)


def _moves_whole(moved: Moved, rules: Rules) -> bool:
    """Return True if the rules reach both places and treat all paths below them alike."""
    return (
        rules.reaches(moved.old, directory=True)
        and rules.reaches(moved.new, directory=True)
        and rules.alike_below(moved.old, moved.new)
    )
