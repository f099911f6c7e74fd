"""Remarks of a commit: not problems, but worth a line.  Paths are counted, the first ones named.

Values only: the engine makes them (`native/tree/src/commit/remarks.rs`), `cli.report` words them,
and JSON has them as `warnings`.
"""

from typing import NamedTuple

from huai_schema.paths import RelPath

TEMPORARY = "temporary"
"""Left out: unfinished files of rsync."""
RESERVED = "reserved"
"""Left out: `.~tmp~`."""
UNREADABLE = "unreadable"
"""Committed, but not readable by all users."""
KINDS = (TEMPORARY, RESERVED, UNREADABLE)
"""The kinds by the engine's numbers."""


class Remark(NamedTuple):
    """A kind of remark, with its paths."""

    kind: str
    number: int
    """The number of all its paths."""
    paths: tuple[RelPath, ...]
    """The first paths, in tree order."""
