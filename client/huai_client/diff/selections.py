"""The differences between two selections, whose snapshots and filters may differ.

With one filter for both it costs what the snapshots differ by; with two filters it reads the
metadata of all that one of them lets through.
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


def diff_selections(past: Selection, wanted: Selection) -> Iterator[Difference]:
    """Everything that takes `past` to `wanted`, as `diff` does for snapshots.

    A moved directory is one step, before what differs in it, if the filter is the same and treats
    both places alike; otherwise it comes entry by entry.
    """
    if past.rules != wanted.rules:
        yield from _across_filters(past, wanted)
        return
    apart = _Apart()
    for difference in diff(past.snapshot, wanted.snapshot):
        if isinstance(difference, Moved) and _moves_whole(difference, wanted.rules):
            yield difference
        elif not apart.covers(difference):
            yield from _by_entry(difference, past, wanted)


def _across_filters(past: Selection, wanted: Selection) -> Iterator[Change]:
    """First the paths in which the snapshots differ, then those in which only the filters do."""
    hidden = past.rules.modes.hides(wanted.rules.modes)
    seen: set[bytes] = set()
    apart = _Apart()
    for difference in diff(past.snapshot, wanted.snapshot):
        if apart.covers(difference):
            continue
        if isinstance(difference, Change):
            seen.add(difference.path)
        else:
            below = wanted.snapshot.subtree(difference.new)
            seen.update(entry.path for listing in below for entry in decode_listing(listing))
        yield from _by_entry(difference, past, wanted)
    for listing in wanted.snapshot.subtree(ROOT, past.rules.table, wanted.rules.table):
        for entry in decode_listing(listing):
            if entry.path not in seen:
                change = Change(entry.path, past.shown(entry), wanted.shown(entry))
                if change.old != change.new or (hidden and change.new):
                    yield change


class _Apart:
    """Moved directories that come entry by entry."""

    def __init__(self) -> None:
        self._new: set[RelPath] = set()

    def covers(self, difference: Difference) -> bool:
        """Whether `difference` is one in such a directory, of which all entries came already."""
        if isinstance(difference, Moved):
            self._new.add(difference.new)
            return False
        path = difference.path
        return bool(self._new) and not self._new.isdisjoint((path, *ancestors(path)))


def _by_entry(difference: Difference, past: Selection, wanted: Selection) -> Iterator[Change]:
    if isinstance(difference, Change):
        old, new = past.shown(difference.old), wanted.shown(difference.new)
        if old is not None or new is not None:
            yield Change(difference.path, old, new)
        return
    for entry in past.entries_below(difference.old):
        yield Change(entry.path, entry, None)
    for entry in wanted.entries_below(difference.new):
        yield Change(entry.path, None, entry)


def _moves_whole(moved: Moved, rules: Rules) -> bool:
    return (
        rules.reaches(moved.old, directory=True)
        and rules.reaches(moved.new, directory=True)
        and rules.alike_below(moved.old, moved.new)
    )
