"""The changes between two snapshots, as `diff` shows them, and their totals.

Pure, and streams: changes come in no particular order.  A directory that moved is one change;
differences in it are shown at its new path, and removals at its old one.  A file that was removed
at one path and added at another with the same digest has moved; to find these pairs, the
differences are read twice.  A path that became a directory, or was one, is removed and added.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from itertools import islice, pairwise
from typing import NamedTuple

from huai_client.metadata.commit import Commit
from huai_program.humanize import counted, human
from huai_schema.diff.changes import Change, Moved, differing, is_touched_directory
from huai_schema.diff.diff import Difference, diff
from huai_schema.entries import Entry, File
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, after_moves, ancestors, path_order

_REMOVED_MOST = 1_000_000
"""The number of removed files above which moves are not searched, to bound the memory."""
SORTED_MOST = 100_000
"""The number of changes above which they are not sorted."""


class Sign(StrEnum):
    """The kind of a change."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


class SnapshotChange(NamedTuple):
    """A change of a path."""

    sign: Sign
    path: RelPath
    """The new path; for `REMOVED` the old one."""
    old: Entry | None = None
    """The old entry; None for a `MOVED` directory."""
    new: Entry | None = None
    source: RelPath | None = None
    """The old path, for `MOVED`."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes that differ, sorted; empty if only one side exists."""
        if self.old is None or self.new is None:
            return ()
        return tuple(sorted(differing(self.old, self.new)))


def compare_snapshots(old: Snapshot, new: Snapshot) -> Iterator[SnapshotChange]:
    """Yield the changes from `old` to `new`, in no particular order, moves found by digest last."""
    movable = _digests_on_both_sides(old, new)
    removed: list[File] = []
    added: list[File] = []
    for difference in _differences(old, new):
        if isinstance(difference, Moved):
            yield SnapshotChange(Sign.MOVED, difference.new, source=difference.old)
        elif (file := _lone(difference)) is not None and file.digest in movable:
            (removed if difference.new is None else added).append(file)
        else:
            yield _step(difference)
    yield from _paired(removed, added)


def _differences(old: Snapshot, new: Snapshot) -> Iterator[Difference]:
    """Yield the differences, with removals from a moved directory at their old paths."""
    sources: dict[RelPath, RelPath] = {}
    for difference in diff(old, new):
        if isinstance(difference, Moved):
            sources[difference.new] = difference.old
        elif sources and difference.new is None and difference.old is not None:
            path = after_moves(difference.old.path, sources)
            yield Change(path, difference.old._replace(path=path), None)
            continue
        yield difference


def without_unfetched(
    steps: Iterable[SnapshotChange], snapshots: Sequence[Snapshot], absent: Collection[bytes]
) -> Iterator[SnapshotChange]:
    """Yield `steps`, except in directories with one of the trees `absent` in any of `snapshots`."""

    @cache
    def is_absent(path: RelPath) -> bool:
        return any(snapshot.own_tree(path) in absent for snapshot in snapshots)

    for step in steps:
        paths = [step.path] if step.source is None else [step.path, step.source]
        if not any(is_absent(each) for path in paths for each in (path, *ancestors(path))):
            yield step


def by_path(steps: Iterable[SnapshotChange]) -> Iterator[SnapshotChange]:
    """Yield `steps` by path, a removal first; more than `SORTED_MOST` of them are not sorted."""
    steps = iter(steps)
    first = list(islice(steps, SORTED_MOST + 1))
    if len(first) <= SORTED_MOST:
        first.sort(key=lambda step: (path_order(step.path), step.sign is not Sign.REMOVED))
    yield from first
    yield from steps


def _step(change: Change) -> SnapshotChange:
    """Return `change` as one that is added, removed or changed; never as a move."""
    sign = Sign.CHANGED
    if change.old is None:
        sign = Sign.ADDED
    elif change.new is None:
        sign = Sign.REMOVED
    return SnapshotChange(sign, change.path, change.old, change.new)


def _digests_on_both_sides(old: Snapshot, new: Snapshot) -> set[bytes | None]:
    """Return the digests of files that were removed and added; none if over a million are gone."""
    removed: set[bytes | None] = set()
    added: set[bytes | None] = set()
    for difference in _differences(old, new):
        file = _lone(difference) if isinstance(difference, Change) else None
        if isinstance(difference, Change) and file is not None:
            (removed if difference.new is None else added).add(file.digest)
            if len(removed) > _REMOVED_MOST:
                return set()
    return removed & added


def _lone(change: Change) -> File | None:
    """Return the file of a change, if it is on one side only, and has a digest and content.

    Empty files all have the same digest.
    """
    file = change.old or change.new
    if change.old is not None and change.new is not None:
        return None
    if isinstance(file, File) and file.digest is not None and file.size > 0:
        return file
    return None


def _paired(removed: Iterable[File], added: Iterable[File]) -> Iterator[SnapshotChange]:
    """Yield moves of files with equal digests, each used once, and additions; then removals."""
    waiting: dict[bytes | None, list[File]] = {}
    for file in sorted(removed, key=lambda file: path_order(file.path), reverse=True):
        waiting.setdefault(file.digest, []).append(file)
    for new in sorted(added, key=lambda file: path_order(file.path)):
        sources = waiting[new.digest]
        if sources:
            old = sources.pop()
            yield SnapshotChange(Sign.MOVED, new.path, old, new, old.path)
        else:
            yield SnapshotChange(Sign.ADDED, new.path, None, new)
    for files in waiting.values():
        yield from (SnapshotChange(Sign.REMOVED, file.path, file) for file in files)


class ChangeTotals:
    """The counts of changes, and the bytes of files that were added, removed or rewritten."""

    def __init__(self) -> None:
        self._counts: Counter[Sign] = Counter()
        self._bytes: Counter[Sign] = Counter()
        self._touched = 0
        """The number of changed directories of which only the time differs."""

    def add(self, step: SnapshotChange) -> None:
        """Count a change."""
        self._counts[step.sign] += 1
        self._touched += is_touched_directory(step.old, step.new)
        file = step.old if step.sign is Sign.REMOVED else step.new
        rewritten = step.sign is not Sign.CHANGED or {"size", "digest", "type"} & {*step.attributes}
        if isinstance(file, File) and rewritten:
            self._bytes[step.sign] += file.size

    def values(self) -> dict[str, int]:
        """Return the counts and bytes of each sign for JSON."""
        totals: dict[str, int] = {}
        for sign in Sign:
            totals[str(sign)] = self._counts[sign]
            totals[f"{sign}_bytes"] = self._bytes[sign]
        return totals

    def __str__(self) -> str:
        counts = self._counts - Counter({Sign.CHANGED: self._touched})
        parts = [
            f"{counts[sign]:,} {sign} ({human(self._bytes[sign])})" for sign in Sign if counts[sign]
        ]
        if self._touched:
            parts.append(f"the times of {counted(self._touched, 'directory', 'directories')}")
        return ", ".join(parts) or "nothing differs"


class PathEvent(NamedTuple):
    """A commit's change of the path."""

    commit: Commit
    step: SnapshotChange
    oldest: bool = False
    """True if older commits are missing, so that the path may be older than this one."""


def path_events(path: RelPath, commits: Sequence[Commit]) -> Iterator[PathEvent]:
    """Yield each commit of `commits` (newest first) that changed `path`, followed through moves.

    The last event is the oldest commit, if it has the entry.
    """
    for newer, older in pairwise(commits):
        step = _between(older, newer, path)
        if step is not None:
            yield PathEvent(newer, step)
            if step.sign is Sign.MOVED and step.path == path and step.source is not None:
                path = step.source
    entry = commits[-1].snapshot.entry(path)
    if entry is not None:
        yield PathEvent(commits[-1], SnapshotChange(Sign.ADDED, path, None, entry), oldest=True)


def _between(older: Commit, newer: Commit, path: RelPath) -> SnapshotChange | None:
    """Return the change of `path`, or None; reads all changes only if one side lacks it.

    A move is returned for both of its paths, with the new one as the path of the change.
    """
    if older.snapshot.tree == newer.snapshot.tree:
        return None
    old, new = older.snapshot.entry(path), newer.snapshot.entry(path)
    if old is not None and new is not None:
        return SnapshotChange(Sign.CHANGED, path, old, new) if differing(old, new) else None
    if old is None and new is None:
        return None
    for step in compare_snapshots(older.snapshot, newer.snapshot):
        if step.sign is Sign.MOVED and step.source is not None:
            if new is not None and _covers(step.path, path):
                source = RelPath(step.source + path[len(step.path) :])
                before = older.snapshot.entry(source)
                if before is not None:
                    return SnapshotChange(Sign.MOVED, path, before, new, source)
            if old is not None and _covers(step.source, path):
                target = RelPath(step.path + path[len(step.source) :])
                after = newer.snapshot.entry(target)
                if after is not None:
                    return SnapshotChange(Sign.MOVED, target, old, after, path)
    return SnapshotChange(Sign.ADDED if old is None else Sign.REMOVED, path, old, new)


def _covers(top: RelPath, path: RelPath) -> bool:
    return path == top or path.startswith(top + b"/")
