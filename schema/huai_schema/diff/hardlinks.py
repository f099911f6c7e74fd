"""The one rule of a snapshot that no single line can show: hardlink groups are whole."""

from huai_native import _native
from huai_schema.layout.snapshot import Snapshot


def check_hardlinks(snapshot: Snapshot) -> None:
    """`FormatError` unless each leader is a regular file, no link itself, and equals its group.

    Goes through the tree once, and a second time through the directories that leaders are in;
    memory grows with the number of groups.
    """
    _native.check_hardlinks(snapshot.reader, snapshot.tree, snapshot.limit)
