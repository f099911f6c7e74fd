"""Comparing two snapshots (FORMAT.md, "Comparing").

The engine compares by ids, so that objects with one id on both sides are never read, and in
batches, so that memory stays small.  A moved directory comes before the changes inside it; the
order is not defined otherwise.  A path that turned from a directory into something else, or back,
is yielded twice, as removed and as new (`changes.merge_by_path` merges the two).
"""

from collections.abc import Iterator
from typing import TypeAlias

from huai_native import _native
from huai_schema.codec.columns import BATCH, BEFORE, GONE, MOVED, decode_batch
from huai_schema.codec.commits import Counts
from huai_schema.diff.changes import Change, Moved
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath

Difference: TypeAlias = Change | Moved


def diff(old: Snapshot, new: Snapshot) -> Iterator[Difference]:
    """Yield the differences between `old` and `new`; `FormatError` for damaged metadata.

    A moved directory comes before the changes inside it; otherwise the order is undefined.  A path
    that became or was a directory is yielded twice, as removed and as new (`merge_by_path`).
    """
    comparison = _native.Comparison(old.arguments, new.arguments)
    while batch := comparison.batch(BATCH):
        before = None
        for role, entry, other in decode_batch(batch):
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
    """Count the entries that were added, removed, changed, or moved with a directory.

    Raises `FormatError` for damaged metadata.
    """
    return Counts(*_native.count_changes(old.arguments, new.arguments))
