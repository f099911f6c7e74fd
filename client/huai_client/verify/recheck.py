"""What seems to differ, until it is sure.

The tree is read without its lock, so what seems to differ may be what a run just does there.
Each such path is looked at once more with the lock held; while another run keeps the lock they
wait, and only at the very end is it done without.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from huai_client.diff.findings import Difference, FoundDifference, Kind
from huai_client.tree import PathError, View
from huai_client.tree.local_entry import differences_here, stat_entry
from huai_client.verify.expected import ExpectedTree
from huai_schema.entries import Entry
from huai_schema.paths import RelPath
from huai_schema.program.locking import LockedError, locked

_ONLY_BY_READING = {"digest", "link"}
"""Attributes of a difference that a look at one path may not show."""


class _Doubt(NamedTuple):
    place: RelPath
    """The part it was found in."""
    found: FoundDifference
    expected: ExpectedTree


class Recheck:
    """Those of one run."""

    def __init__(self, lock: Path, on_difference: Callable[[Difference], None]) -> None:
        """`told` is called with what is sure."""
        self._lock = lock
        self._on_difference = on_difference
        self._pending: list[_Doubt] = []
        self.counts: Counter[RelPath] = Counter()
        """How many paths differ, for each part in which any does or seems to."""

    def add(self, place: RelPath, found: Iterable[FoundDifference], expected: ExpectedTree) -> None:
        """Found in the part at `place`, compared with `expected`."""
        new = [
            _Doubt(place, each, expected)
            for each in found
            if not expected.is_expected_deviation(each)
        ]
        self._pending += new
        if new:
            self.counts[place] += len(new)

    def settle(self, view: View, now: Callable[[], ExpectedTree]) -> None:
        """Tell what is sure, if the lock is free."""
        if self._pending:
            with suppress(LockedError), locked(self._lock):
                self._look_again(view, now())

    def settle_all(self, view: View, now: Callable[[], ExpectedTree], *, wait: float) -> None:
        """The same at the end: with the lock if it comes free within `wait` seconds."""
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
    """What is wrong there now; None: nothing any more.

    `wanted_now` is of the paths that were found under another expected.
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
    found = stat_entry(view, wanted.path)
    if found is None:
        return Difference(wanted.path, Kind.MISSING)
    names = differences_here(view, found, wanted)
    if same:
        names |= _ONLY_BY_READING.intersection(before.attributes)
    return Difference(wanted.path, Kind.DIFFERS, tuple(sorted(names))) if names else None
