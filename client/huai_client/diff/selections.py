"""The differences between two selections, whose snapshots and filters may differ.

With one filter for both, the cost grows with the difference between the snapshots; with two
filters the metadata of everything that one of them includes is read.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from huai_client.diff.selection import Selection
from huai_client.filters.rules import Rules
from huai_schema.diff.changes import Change, Moved
from huai_schema.diff.diff import Difference, diff
from huai_schema.layout.snapshot import decode_listing
from huai_schema.paths import ROOT, ancestors

if TYPE_CHECKING:
    from huai_schema.paths import RelPath


def diff_selections(past: Selection, target: Selection) -> Iterator[Difference]:
    """Yield the differences that lead from `past` to `target`, as `diff` does for snapshots.

    A moved directory is one step, before the differences in it, if the filter is the same and
    treats both places alike; otherwise it comes entry by entry.
    """
    if past.rules != target.rules:
        yield from _across_filters(past, target)
        return
    apart = _Apart()
    for difference in diff(past.snapshot, target.snapshot):
        if isinstance(difference, Moved) and _moves_whole(difference, target.rules):
            yield difference
        elif not apart.covers(difference):
            yield from _by_entry(difference, past, target)


def _across_filters(past: Selection, target: Selection) -> Iterator[Change]:
    """Yield first the differences of the snapshots, then those of the filters alone."""
    hidden = past.rules.modes.hides(target.rules.modes)
    reported: set[bytes] = set()
    apart = _Apart()
    for difference in diff(past.snapshot, target.snapshot):
        if apart.covers(difference):
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
                if change.old != change.new or (hidden and change.new):
                    yield change


class _Apart:
    """The moved directories that are reported entry by entry."""

    def __init__(self) -> None:
        self._new: set[RelPath] = set()

    def covers(self, difference: Difference) -> bool:
        """Return True if `difference` is in such a directory, whose entries were all reported."""
        if isinstance(difference, Moved):
            self._new.add(difference.new)
            return False
        path = difference.path
        return bool(self._new) and not self._new.isdisjoint((path, *ancestors(path)))


def _by_entry(difference: Difference, past: Selection, target: Selection) -> Iterator[Change]:
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
    return (
        rules.reaches(moved.old, directory=True)
        and rules.reaches(moved.new, directory=True)
        and rules.alike_below(moved.old, moved.new)
    )
