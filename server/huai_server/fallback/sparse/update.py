"""Updating an attr tree in place from one snapshot to another, at the cost of the changes.

The attributes of the root come first, because a daemon refuses clients until its mtime is the
sealed one.  Then new entries are made and old ones removed; the times of directories come last.  At
each moment an entry is the old or the new one, and never a mixture.  Changes in a moved directory
are made at its new place.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from huai_schema.diff.changes import Moved, merge_by_path
from huai_schema.diff.diff import diff
from huai_schema.entries import Directory, Entry, File
from huai_schema.layout.snapshot import Snapshot, decode_listing
from huai_schema.paths import ROOT, ancestors, path_order
from huai_server.fallback.kind import UNLISTED, Update
from huai_server.fallback.owners import OwnerIds
from huai_server.fallback.sparse.maker import Maker, delete_tree

if TYPE_CHECKING:
    from huai_schema.diff.changes import Change


def building(generation: Path) -> Path:
    """Return the folder in which an update creates entries; an interrupted one leaves it."""
    return generation.parent.parent / "building"


def plan_update(generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None) -> Update:
    """Compare the snapshots, and return the update of `generation` from `old` to `new`.

    Entries that differ only in what rsync does not list (`UNLISTED`) are left out.  Changes nothing
    yet.
    """
    moves: list[Moved] = []
    changed: list[Change] = []
    for difference in diff(old, new):
        if isinstance(difference, Moved):
            moves.append(difference)
        else:
            changed.append(difference)
    moves.sort(key=lambda each: path_order(each.new))
    changes = [
        change
        for change in sorted(
            merge_by_path(changed).values(), key=lambda each: path_order(each.path)
        )
        if change.attributes - UNLISTED or not (change.old and change.new)
    ]
    return Update(
        len(changes) + len(moves), partial(_apply, generation, changes, moves, new, owners)
    )


def _apply(
    generation: Path,
    changes: "Sequence[Change]",
    moves: Sequence[Moved],
    new: Snapshot,
    owners: OwnerIds | None,
) -> int:
    """Make changes and moves in a generation; return the number whose owner could not be set."""
    place = building(generation)
    delete_tree(place)
    place.mkdir(mode=0o700)
    with Maker(generation, owners, place) as maker:
        _make_changes(maker, changes, moves, new)
    delete_tree(place)
    return maker.unowned


def _make_changes(
    maker: Maker, changes: "Sequence[Change]", moves: Sequence[Moved], new: Snapshot
) -> None:
    """Make, move and remove entries by `maker`, in an order in which each has its directory."""
    # The deepest ones first.
    directories = [each.new for each in reversed(changes) if isinstance(each.new, Directory)]
    old_directories = {each.path for each in changes if isinstance(each.old, Directory)}
    new_directories = [each for each in reversed(directories) if each.path not in old_directories]
    moved = {move.new for move in moves}
    _set_attributes(maker, (each for each in directories if each.path == ROOT))
    for directory in new_directories:
        if moved.isdisjoint(ancestors(directory.path)):
            maker.make_directory(directory)
    for move in moves:
        maker.move(move.old, move.new)
    for directory in new_directories:
        if not moved.isdisjoint(ancestors(directory.path)):
            maker.make_directory(directory)
    _make_leaves(maker, [each.new for each in changes if each.new], _moved_links(moves, new))
    lost = old_directories.difference(directory.path for directory in directories)
    for change in changes:
        # A moved directory may have replaced a file, which needs no removal then.
        is_removed = change.new is None and change.path not in moved
        # A removed directory is removed with all below it.
        if is_removed and lost.isdisjoint(ancestors(change.path)):
            maker.remove(change.path)
    _set_attributes(maker, (each for each in directories if each.path != ROOT))


def _set_attributes(maker: Maker, directories: Iterable[Directory]) -> None:
    for directory in directories:
        maker.set_attributes(directory)


def _make_leaves(maker: Maker, entries: Sequence[Entry], links: Iterable[Entry]) -> None:
    """Make the files and symlinks of `entries`, then its hardlinks and those of `links`."""
    for entry in entries:
        if not isinstance(entry, Directory) and not _is_link(entry):
            maker.make_leaf(entry)
    for entry in (*entries, *links):
        if not isinstance(entry, Directory) and _is_link(entry):
            maker.make_leaf(entry)


def _moved_links(moves: Sequence[Moved], new: Snapshot) -> Iterator[Entry]:
    """Yield the leaves of moved directories that have hardlinks, which may have a new leader."""
    for move in moves:
        for listing in new.subtree(move.new):
            if b"\th" in listing.leaves:
                yield from decode_listing(listing)


def _is_link(entry: Entry) -> bool:
    return isinstance(entry, File) and entry.link is not None
