"""The history of a path through the commits of the repository, newest first.

Pure.  A path that moved with a directory, or as a file with the same digest, is followed to its
old path.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from huai_client.inspect.comparison import Sign, SnapshotChange, compare_snapshots
from huai_client.metadata.commit import Commit
from huai_schema.diff.changes import differing
from huai_schema.paths import RelPath


class Event(NamedTuple):
    """A commit's change of the path."""

    commit: Commit
    step: SnapshotChange
    oldest: bool = False
    """True if older commits are missing, so that the path may be older than this one."""


def path_events(path: RelPath, commits: Sequence[Commit]) -> Iterator[Event]:
    """Yield each commit of `commits` (newest first) that changed the entry at `path`."""
    for newer, older in pairwise(commits):
        step = _between(older, newer, path)
        if step is not None:
            yield Event(newer, step)
            if step.sign is Sign.MOVED and step.path == path and step.source is not None:
                path = step.source
    entry = commits[-1].snapshot.entry(path)
    if entry is not None:
        yield Event(commits[-1], SnapshotChange(Sign.ADDED, path, None, entry), oldest=True)


def _between(older: Commit, newer: Commit, path: RelPath) -> SnapshotChange | None:
    """Return the change of `path`; all changes are read only for an addition or removal."""
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
