"""Comparing two snapshots (FORMAT.md, "Comparing").

The engine compares: driven by unequal ids, so that what has one id on both sides is never read,
and in batches, so that no more is held than what is being looked at.  A directory that moved comes
before what differs in it; the order of what is yielded is not defined otherwise.  A path that
turned from a directory into something else, or back, is yielded twice: as gone and as new
(`changes.joined` brings them together).
"""

from collections.abc import Iterator
from typing import TypeAlias

from huai_native import _native
from huai_schema.codec.columns import BATCH, BEFORE, GONE, MOVED, entries
from huai_schema.codec.commits import Counts
from huai_schema.diff.changes import Change, Moved
from huai_schema.git.objects import ObjectReader
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath

Difference: TypeAlias = Change | Moved


def diff(old: Snapshot, new: Snapshot) -> Iterator[Difference]:
    """Everything that takes `old` to `new`."""
    comparison = _native.Comparison(_side(old), _side(new))
    while batch := comparison.batch(BATCH):
        before = None
        for role, entry, other in entries(batch):
            if role == BEFORE:
                before = entry
            elif role == GONE:
                yield Change(entry.path, entry, None)
            elif role == MOVED:
                yield Moved(entry.path, RelPath(other))
            else:
                yield Change(entry.path, before, entry)
                before = None


def count(old: Snapshot, new: Snapshot) -> Counts:
    """How many entries were added, removed, changed, and came along below a moved directory."""
    return Counts(*_native.count_changes(_side(old), _side(new)))


def _side(snapshot: Snapshot) -> tuple[ObjectReader, bytes, int]:
    return snapshot.reader, snapshot.tree, snapshot.limit
