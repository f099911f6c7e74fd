"""Checks hardlink groups, the one rule of a snapshot that spans several lines."""

from huai_native import _native
from huai_schema.layout.snapshot import Snapshot


def check_hardlinks(snapshot: Snapshot) -> None:
    """Raise `FormatError` unless each leader is a regular file, not a link, and equals its group.

    Reads the tree once, and the directories of leaders again; memory grows with the number of
    groups.
    """
    _native.check_hardlinks(snapshot.reader, snapshot.tree, snapshot.limit)
