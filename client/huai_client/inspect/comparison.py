"""The changes between two snapshots, as `diff` shows them, and their totals.

Pure, and streams: changes come as they are found, in no particular order.  A directory that moved
is one change, whatever it holds; what differs in it is shown where it is now, and what is gone from
it where it was.  A file that was removed at one path and added at another with the same digest has
moved; to find these pairs, the differences are read twice.  A path that became a directory, or was
one, is removed and added.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from huai_program.humanize import counted, human
from huai_schema.diff.changes import Change, Moved, differing, is_touched_directory
from huai_schema.diff.diff import Difference, diff
from huai_schema.entries import Entry, File
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, ancestors, path_order

_GONE_MOST = 1_000_000
"""Removed files; if there are more, no moves of files are found: they would fill the memory."""
SORTED_MOST = 100_000
"""Changes; more are shown in the order in which they are found."""


class Sign(StrEnum):
    """What became of a path."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


class SnapshotChange(NamedTuple):
    """A change of one path."""

    sign: Sign
    path: RelPath
    """Where it is now; for `REMOVED`: where it was."""
    old: Entry | None = None
    """For `MOVED`: None if it is a directory with all that it holds."""
    new: Entry | None = None
    source: RelPath | None = None
    """For `MOVED`: where it was."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of what differs, sorted; none where only one side has it."""
        if self.old is None or self.new is None:
            return ()
        return tuple(sorted(differing(self.old, self.new)))


def compare_snapshots(old: Snapshot, new: Snapshot) -> Iterator[SnapshotChange]:
    """Everything that takes `old` to `new`."""
    known = _digests_on_both_sides(old, new)
    gone: list[File] = []
    arrived: list[File] = []
    for each in _differences(old, new):
        if isinstance(each, Moved):
            yield SnapshotChange(Sign.MOVED, each.new, source=each.old)
        elif (file := _lone(each)) is not None and file.digest in known:
            (gone if each.new is None else arrived).append(file)
        else:
            yield _step(each)
    yield from _paired(gone, arrived)


def _differences(old: Snapshot, new: Snapshot) -> Iterator[Difference]:
    """As `diff`; what is gone from a directory that moved is at its old path."""
    sources: dict[RelPath, RelPath] = {}
    for each in diff(old, new):
        if isinstance(each, Moved):
            sources[each.new] = each.old
        elif sources and each.new is None and each.old is not None:
            yield _as_it_was(each.old, sources)
            continue
        yield each


def _as_it_was(gone: Entry, sources: dict[RelPath, RelPath]) -> Change:
    path = gone.path
    above = next((each for each in ancestors(path) if each in sources), None)
    if above is not None:
        path = RelPath(sources[above] + path[len(above) :])
    return Change(path, gone._replace(path=path), None)


def by_path(steps: Iterable[SnapshotChange]) -> Iterator[SnapshotChange]:
    """Sorted by path, if there are at most `SORTED_MOST`; at one path a removal comes first."""
    steps = iter(steps)
    first = list(islice(steps, SORTED_MOST + 1))
    if len(first) <= SORTED_MOST:
        first.sort(key=lambda step: (path_order(step.path), step.sign is not Sign.REMOVED))
    yield from first
    yield from steps


def _step(change: Change) -> SnapshotChange:
    sign = Sign.CHANGED
    if change.old is None:
        sign = Sign.ADDED
    elif change.new is None:
        sign = Sign.REMOVED
    return SnapshotChange(sign, change.path, change.old, change.new)


def _digests_on_both_sides(old: Snapshot, new: Snapshot) -> set[bytes | None]:
    """Digests of files that were removed at one path and added at another."""
    gone: set[bytes | None] = set()
    arrived: set[bytes | None] = set()
    for each in _differences(old, new):
        file = _lone(each) if isinstance(each, Change) else None
        if isinstance(each, Change) and file is not None:
            (gone if each.new is None else arrived).add(file.digest)
            if len(gone) > _GONE_MOST:
                return set()
    return gone & arrived


def _lone(change: Change) -> File | None:
    """The file of a change, if it is on one side only, and has a digest and content.

    Empty files all have the same digest.
    """
    file = change.old or change.new
    if change.old is not None and change.new is not None:
        return None
    if isinstance(file, File) and file.digest is not None and file.size > 0:
        return file
    return None


def _paired(gone: Iterable[File], arrived: Iterable[File]) -> Iterator[SnapshotChange]:
    """Moves of files with equal digests, each file taken once, by path; then what is left."""
    waiting: dict[bytes | None, list[File]] = {}
    for file in sorted(gone, key=lambda file: path_order(file.path), reverse=True):
        waiting.setdefault(file.digest, []).append(file)
    for new in sorted(arrived, key=lambda file: path_order(file.path)):
        sources = waiting[new.digest]
        if sources:
            old = sources.pop()
            yield SnapshotChange(Sign.MOVED, new.path, old, new, old.path)
        else:
            yield SnapshotChange(Sign.ADDED, new.path, None, new)
    for files in waiting.values():
        yield from (SnapshotChange(Sign.REMOVED, file.path, file) for file in files)


class ChangeTotals:
    """Counts of changes, and the bytes of files that were added, removed or have new content."""

    def __init__(self) -> None:
        self._counts: Counter[Sign] = Counter()
        self._bytes: Counter[Sign] = Counter()
        self._touched = 0
        """Directories among the changed, of which nothing but the time differs."""

    def add(self, step: SnapshotChange) -> None:
        """One more."""
        self._counts[step.sign] += 1
        self._touched += is_touched_directory(step.old, step.new)
        file = step.old if step.sign is Sign.REMOVED else step.new
        arrived = step.sign is not Sign.CHANGED or {"size", "digest", "type"} & {*step.attributes}
        if isinstance(file, File) and arrived:
            self._bytes[step.sign] += file.size

    def values(self) -> dict[str, int]:
        """For JSON: each sign, and the bytes of its files."""
        found: dict[str, int] = {}
        for sign in Sign:
            found[str(sign)] = self._counts[sign]
            found[f"{sign}_bytes"] = self._bytes[sign]
        return found

    def __str__(self) -> str:
        counts = self._counts - Counter({Sign.CHANGED: self._touched})
        parts = [
            f"{counts[sign]:,} {sign} ({human(self._bytes[sign])})" for sign in Sign if counts[sign]
        ]
        if self._touched:
            parts.append(f"the times of {counted(self._touched, 'directory', 'directories')}")
        return ", ".join(parts) or "nothing differs"
