"""A second comparison of paths that seem to differ.

The tree is read without its lock, so a difference may be the work of a running sync.  Each such
path is compared once more under the lock.  While another run holds the lock the paths wait; if it
is not released before the end, they are compared without it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from huai_client.diff.candidate import Difference, DifferenceKind, FoundDifference
from huai_client.diff.table import compare_path
from huai_client.plan.protect import without_expected
from huai_client.tree import PathError, View
from huai_client.verify.expected import ExpectedTree, Stamp
from huai_program.locking import LockedError, locked
from huai_schema.entries import Entry
from huai_schema.paths import RelPath

_ONLY_BY_READING = {"digest", "link"}
"""Attributes that a second comparison of the path alone does not cover."""


class _Doubt(NamedTuple):
    part: RelPath
    """The part with the path."""
    deviation: FoundDifference
    stamp: Stamp
    """The stamp of the tree that was expected."""


class Recheck:
    """The paths of one run that seem to differ: each is compared again before it is reported."""

    def __init__(self, lock: Path, on_difference: Callable[[Difference], None]) -> None:
        """Call `on_difference` with each path that does differ."""
        self._lock = lock
        self._on_difference = on_difference
        self._pending: list[_Doubt] = []
        self.counts: Counter[RelPath] = Counter()
        """The number of paths that differ or seem to, by part."""

    def add(self, part: RelPath, deviations: Sequence[FoundDifference], stamp: Stamp) -> None:
        """Add the differences of the part at `part` from the tree with this stamp."""
        self._pending += (_Doubt(part, each, stamp) for each in deviations)
        if deviations:
            self.counts[part] += len(deviations)

    def settle(self, view: View, now: Callable[[], ExpectedTree]) -> None:
        """If the lock is free, compare the paths again, and report those that do differ.

        If not, they wait for the next call.  `now` returns the tree that is expected at that time.
        """
        if self._pending:
            with suppress(LockedError), locked(self._lock):
                self._compare_again(view, now())

    def settle_all(self, view: View, now: Callable[[], ExpectedTree], *, wait: float) -> None:
        """Compare as `settle` does; without the lock if it is not free within `wait` seconds."""
        if not self._pending:
            return
        with suppress(LockedError), locked(self._lock, wait=wait):
            self._compare_again(view, now())
        if self._pending:
            self._compare_again(view, now())

    def _compare_again(self, view: View, expected: ExpectedTree) -> None:
        """Compare all pending paths; correct the counts, and report those that do differ."""
        view.refresh()
        pending, self._pending = self._pending, []
        old = [each.deviation.difference.path for each in pending if each.stamp != expected.stamp]
        required = expected.required_at(old)
        for part, doubts in groupby(pending, key=lambda doubt: doubt.part):
            again = [
                (doubt, _compare_path_again(view, doubt, expected, required)) for doubt in doubts
            ]
            current = [difference for _, difference in again if difference is not None]
            sure = list(without_expected(current, expected.protection, view))
            self.counts[part] -= len(again) - len(sure)
            for difference in sure:
                self._on_difference(difference)


def _compare_path_again(
    view: View, doubt: _Doubt, expected: ExpectedTree, expected_now: Mapping[RelPath, Entry]
) -> Difference | None:
    """Return the current difference; None if the path is right.

    `expected_now` has the entries of paths that were compared with another commit before.
    """
    difference, former = doubt.deviation
    path = difference.path
    if difference.kind is DifferenceKind.UNREADABLE:
        return difference
    now = former if expected.stamp == doubt.stamp else expected_now.get(path)
    try:
        if now is None:
            strange = former is None and view.stat(path) is not None
            return (
                difference
                if strange and not expected.is_expected_deviation(doubt.deviation)
                else None
            )
        return _compared(view, now, difference, same=now == former)
    except PathError as error:
        return Difference(error.path, DifferenceKind.UNREADABLE, reason=error.reason)


def _compared(view: View, entry: Entry, before: Difference, *, same: bool) -> Difference | None:
    """Compare a path again; return the difference, or None if nothing differs.

    What only reading shows is kept from `before` if `entry` is the `same`.
    """
    candidate = compare_path(view, entry.path, entry)
    if not candidate.present:
        return Difference(entry.path, DifferenceKind.MISSING)
    names = candidate.differing
    if same:
        names |= _ONLY_BY_READING.intersection(before.attributes)
    return Difference(entry.path, DifferenceKind.DIFFERS, tuple(sorted(names))) if names else None
