"""Taking an attr tree from one snapshot to another, in place, at the cost of what changed.

The attributes of the root come first: a daemon refuses clients until its mtime is the sealed one.
Then new entries are made, then old ones removed; the times of directories come last.  At each
moment an entry is the old one or the new one, and never half of each.  What differs in a directory
that moved is done where it is then.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from huai_schema.diff.changes import Moved, joined
from huai_schema.diff.diff import diff
from huai_schema.entries import Directory, Entry, File
from huai_schema.layout.snapshot import Snapshot, decode_listing
from huai_schema.paths import ROOT, RelPath, ancestors, parent, path_order
from huai_server.fallback.attr.deleting import delete_tree
from huai_server.fallback.attr.maker import Maker
from huai_server.fallback.attr.records import Records
from huai_server.fallback.owners import OwnerIds

if TYPE_CHECKING:
    from huai_schema.diff.changes import Change

_UNLISTED = frozenset(("digest",))
"""Attributes that rsync does not list."""


def building(generation: Path) -> Path:
    """The folder in which entries are made; an interrupted one leaves it behind."""
    return generation.parent.parent / "building"


class SparseUpdate:
    """An update of sparse files in place (`kind.Update`)."""

    def __init__(
        self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None
    ) -> None:
        """Compare the snapshots; nothing is changed yet."""
        self._generation = generation
        self._building = building(generation)
        self._new = new
        self._owners = owners
        self._moves: list[Moved] = []
        changes: list[Change] = []
        for difference in diff(old, new):
            if isinstance(difference, Moved):
                self._moves.append(difference)
            else:
                changes.append(difference)
        self._changes = [
            change
            for change in sorted(joined(changes).values(), key=lambda each: path_order(each.path))
            if change.attributes - _UNLISTED or not (change.old and change.new)
        ]

    @property
    def changes(self) -> int:
        """How many entries differ; a moved directory with all below it counts once."""
        return len(self._changes) + len(self._moves)

    def run(self) -> int:
        """Do it; an `OSError` leaves each entry old or new."""
        delete_tree(self._building)
        self._building.mkdir(mode=0o700)
        with Maker(self._generation, self._building) as maker:
            maker.apply(self._attributes(root=True))
            for part in self._parts():
                maker.apply(part)
            maker.leave()
            maker.apply(self._attributes(root=False))
            unowned = maker.unowned
        delete_tree(self._building)
        return unowned

    def _parts(self) -> Iterable[bytes]:
        """The records of each step, in order."""
        records = _Placed(Records(self._owners))
        wanted = [change.new for change in self._changes if change.new is not None]
        for directory in self._made(inside=False):
            records.add(directory)
        yield records.take()
        for move in sorted(self._moves, key=lambda each: path_order(each.new)):
            records.records.move(move.old, move.new)
        yield records.take()
        for directory in self._made(inside=True):
            records.add(directory)
        yield records.take()
        leaves = [entry for entry in wanted if not isinstance(entry, Directory)]
        for leaf in leaves:
            if not _is_link(leaf):
                records.add(leaf)
        for entry in (*leaves, *self._moved_links()):
            if _is_link(entry):
                records.add(entry)
        yield records.take()
        for path in self._gone():
            records.remove(path)
        yield records.take()

    def _made(self, *, inside: bool) -> list[Directory]:
        """New directories, inside those that moved or outside."""
        moved = {move.new for move in self._moves}
        made = (
            change.new
            for change in self._changes
            if isinstance(change.new, Directory) and not isinstance(change.old, Directory)
        )
        return [each for each in made if inside != moved.isdisjoint(ancestors(each.path))]

    def _moved_links(self) -> Iterable[Entry]:
        """Hardlinks below moved directories, which have to be made again for a new leader."""
        for move in self._moves:
            for listing in self._new.subtree(move.new):
                if b"\th" in listing.leaves:
                    yield from decode_listing(listing)

    def _gone(self) -> Iterable[RelPath]:
        """The uppermost paths that have to be removed; all below them goes, too."""
        lost = {each.path for each in self._changes if isinstance(each.old, Directory)}
        lost -= {each.path for each in self._changes if isinstance(each.new, Directory)}
        # A moved directory may be in the place of a file, which is then removed already.
        taken = {move.new for move in self._moves}
        for change in self._changes:
            if change.new is not None or change.path in taken:
                continue
            if lost.isdisjoint(ancestors(change.path)):
                yield change.path

    def _attributes(self, *, root: bool) -> bytes:
        """Of the root, or of the other directories that stay, the deepest first."""
        records = Records(self._owners)
        for change in reversed(self._changes):
            if isinstance(change.new, Directory) and root == (change.path == ROOT):
                records.attributes(change.new)
        return records.take()


class _Placed:
    """Records that enter a directory when the next one is about another."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self._entered: RelPath | None = None

    def add(self, entry: Entry) -> None:
        self._enter(parent(entry.path))
        if isinstance(entry, Directory):
            self.records.directory(entry)
        else:
            self.records.leaf(entry)

    def remove(self, path: RelPath) -> None:
        self._enter(parent(path))
        self.records.remove(path)

    def take(self) -> bytes:
        """All records so far; the next one enters its directory again."""
        self._entered = None
        return self.records.take()

    def _enter(self, directory: RelPath) -> None:
        if directory != self._entered:
            self.records.enter(directory)
            self._entered = directory


def _is_link(entry: Entry) -> bool:
    return isinstance(entry, File) and entry.link is not None


def root_time(snapshot: Snapshot) -> int:
    """The time of the root, in nanoseconds: what the seal says."""
    root = snapshot.directory(ROOT)
    return 0 if root is None else root.mtime
