"""A second look at paths that seem to differ.

The tree is read without its lock, so a difference may be the work of a sync that runs.  Each such
path is compared once more under the lock.  While another run holds the lock the paths wait; if it
does not come free until the end, they are compared without it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from huai_client.diff.findings import Difference, FoundDifference, Kind
from huai_client.diff.table import compare_path
from huai_client.tree import PathError, View
from huai_client.tree.local_entry import stat_entry
from huai_client.verify.expected import ExpectedTree
from huai_program.locking import LockedError, locked
from huai_schema.entries import Entry
from huai_schema.paths import RelPath

_ONLY_BY_READING = {"digest", "link"}
"""Attributes that a second look at the path alone does not compare."""


class _Doubt(NamedTuple):
    place: RelPath
    """The part it was found in."""
    found: FoundDifference
    expected: ExpectedTree


class Recheck:
    """The paths of one run that seem to differ."""

    def __init__(self, lock: Path, on_difference: Callable[[Difference], None]) -> None:
        """`on_difference` is called with each path that does differ."""
        self._lock = lock
        self._on_difference = on_difference
        self._pending: list[_Doubt] = []
        self.counts: Counter[RelPath] = Counter()
        """For each part how many paths differ, or seem to."""

    def add(self, place: RelPath, found: Iterable[FoundDifference], expected: ExpectedTree) -> None:
        """Add what was found in the part at `place`, compared with `expected`."""
        new = [
            _Doubt(place, each, expected)
            for each in found
            if not expected.is_expected_deviation(each)
        ]
        self._pending += new
        if new:
            self.counts[place] += len(new)

    def settle(self, view: View, now: Callable[[], ExpectedTree]) -> None:
        """Compare them again, if the lock is free."""
        if self._pending:
            with suppress(LockedError), locked(self._lock):
                self._look_again(view, now())

    def settle_all(self, view: View, now: Callable[[], ExpectedTree], *, wait: float) -> None:
        """Compare them again: under the lock, if it comes free within `wait` seconds."""
        if not self._pending:
            return
        with suppress(LockedError), locked(self._lock, wait=wait):
            self._look_again(view, now())
        if self._pending:
            self._look_again(view, now())

    def _look_again(self, view: View, expected: ExpectedTree) -> None:
        view.refresh()
        pending, self._pending = self._pending, []
        old = [each.found.difference.path for each in pending if each.expected is not expected]
        wanted = expected.wanted_at(old)
        for place, doubts in groupby(pending, key=lambda doubt: doubt.place):
            again = [(doubt, _second_look(view, doubt, expected, wanted)) for doubt in doubts]
            seen = [difference for _, difference in again if difference is not None]
            sure = list(expected.tolerated(seen, view))
            self.counts[place] -= len(again) - len(sure)
            for difference in sure:
                self._on_difference(difference)


def _second_look(
    view: View, doubt: _Doubt, expected: ExpectedTree, wanted_now: Mapping[RelPath, Entry]
) -> Difference | None:
    """The difference now; None: the path is right.

    `wanted_now` has the entries of paths that were compared with another commit before.
    """
    difference, wanted = doubt.found
    path = difference.path
    if difference.kind is Kind.UNREADABLE:
        return difference
    now = wanted if expected is doubt.expected else wanted_now.get(path)
    try:
        if now is None:
            strange = wanted is None and stat_entry(view, path) is not None
            return (
                difference if strange and not expected.is_expected_deviation(doubt.found) else None
            )
        return _compared(view, now, difference, same=now == wanted)
    except PathError as error:
        return Difference(error.path, Kind.UNREADABLE, reason=error.reason)


def _compared(view: View, wanted: Entry, before: Difference, *, same: bool) -> Difference | None:
    found = compare_path(view, wanted.path, wanted)
    if not found.present:
        return Difference(wanted.path, Kind.MISSING)
    names = found.differing
    if same:
        names |= _ONLY_BY_READING.intersection(before.attributes)
    return Difference(wanted.path, Kind.DIFFERS, tuple(sorted(names))) if names else None
