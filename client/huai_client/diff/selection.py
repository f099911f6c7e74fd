"""The part of a snapshot that a filter lets through, with the modes that `modes` gives; its size.

Reads objects only, and no manifests of directories that are left out.
Rule to keep: an entry of a selection depends only on the rules and the entry of the snapshot, so
comparing two selections costs what the two snapshots differ by.  So a hardlink whose leader is
left out becomes a file of its own.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import NamedTuple, Self

from huai_client.filters.rules import Rules
from huai_schema.codec.commits import Totals
from huai_schema.codec.listing import Listing
from huai_schema.diff.changes import Change
from huai_schema.diff.diff import Difference
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.layout.snapshot import Snapshot, decode_listing
from huai_schema.paths import ROOT, RelPath, parent


class Selection:
    """One snapshot through one filter; asked like the snapshot."""

    def __init__(self, snapshot: Snapshot, rules: Rules) -> None:
        self.snapshot = snapshot
        self.rules = rules

    def entries(self) -> Iterator[Entry]:
        """All entries in tree order."""
        return self.entries_below(ROOT)

    def entries_below(self, path: RelPath) -> Iterator[Entry]:
        """The directory at `path` and everything in it; nothing if it is left out."""
        return chain.from_iterable(map(self._entries_of, self.listings(path)))

    def symlinks(self) -> Iterator[Symlink]:
        """All symlinks; reads no other directories line by line."""
        for listing in self.listings():
            if b"\t>" in listing.leaves:
                entries = self._entries_of(listing)
                yield from (entry for entry in entries if isinstance(entry, Symlink))

    def linked(self, below: RelPath = ROOT) -> Iterator[Entry]:
        """As `entries_below`, but only of directories that may hold hardlinks."""
        for listing in self.listings(below):
            if b"\th" in listing.leaves:
                yield from self._entries_of(listing)

    def entry(self, path: RelPath) -> Entry | None:
        """The entry at `path`; None if there is none, or the filter leaves it out."""
        return self.shown(self.snapshot.entry(path))

    def entries_at(self, paths: Iterable[RelPath]) -> dict[RelPath, Entry]:
        """The entries at `paths`, where there are any; reads each directory once."""
        found: dict[RelPath, Entry] = {}
        for folder, group in groupby(sorted(set(paths), key=_by_folder), key=parent):
            inside = set(group)
            listing = self.snapshot.listing(folder)
            leaves = decode_listing(listing) if listing else ()
            found.update((entry.path, entry) for entry in leaves if entry.path in inside)
            for path in inside - found.keys():
                if directory := self.snapshot.directory(path):
                    found[path] = directory
        shown = ((path, self.shown(entry)) for path, entry in found.items())
        return {path: entry for path, entry in shown if entry is not None}

    def directory(self, path: RelPath) -> Directory | None:
        """The directory at `path`; None as above."""
        if not self.rules.reaches(path, directory=True):
            return None
        found = self.snapshot.directory(path)
        return None if found is None else self.rules.modes.of_directory(found)

    def shown(self, entry: Entry | None) -> Entry | None:
        """An entry of the snapshot as the selection has it; None if the filter leaves it out."""
        reaches = self.rules.reaches
        if entry is None or not reaches(entry.path, directory=isinstance(entry, Directory)):
            return None
        if isinstance(entry, File) and entry.link and not reaches(entry.link, directory=False):
            entry = entry._replace(link=None)
        return self.rules.modes.of(entry)

    def listings(self, below: RelPath = ROOT) -> Iterator[Listing]:
        """The directories that the filter lets through, each with all leaves of the snapshot."""
        return self.snapshot.subtree(below, self.rules.table)

    def _entries_of(self, listing: Listing) -> Iterator[Entry]:
        return map(self.rules.modes.of, decode_listing(listing, self.rules.table))


def _by_folder(path: RelPath) -> tuple[RelPath, RelPath]:
    return parent(path), path


class Extent(NamedTuple):
    """The entries and bytes of one selection."""

    entries: int
    bytes: int
    """Of all files; a hardlink group counts once for each name, as in a commit's totals."""

    @classmethod
    def of_totals(cls, totals: Totals) -> Self:
        """From the totals of a commit, which hold if there is no filter."""
        return cls(totals.entries, totals.bytes)

    @classmethod
    def of(cls, selection: Selection) -> Self:
        """Count all that is selected."""
        entries = size = 0
        for entry in selection.entries():
            entries += 1
            size += _size(entry)
        return cls(entries, size)

    def after(self, steps: Iterable[Difference]) -> Self:
        """The extent after `steps`; a move changes nothing."""
        entries, size = self
        for step in steps:
            if isinstance(step, Change):
                entries += (step.new is not None) - (step.old is not None)
                size += _size(step.new) - _size(step.old)
        return type(self)(entries, size)


def _size(entry: Entry | None) -> int:
    return entry.size if isinstance(entry, File) else 0
