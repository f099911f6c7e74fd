"""Remarks of a commit: what is no problem, but worth a line.  Paths are counted, the first named.

Values only; `cli.report` puts them into words.
"""

from typing import NamedTuple

from huai_schema.paths import RelPath

TEMPORARY = "temporary"
"""Left out: files that rsync has not finished."""
RESERVED = "reserved"
"""Left out: `.~tmp~`."""
UNREADABLE = "unreadable"
"""Committed, but others may not read it."""
_KINDS = (TEMPORARY, RESERVED, UNREADABLE)


class Remark(NamedTuple):
    """One kind of thing that was seen."""

    kind: str
    number: int
    paths: tuple[RelPath, ...]
    """The first of them, in tree order."""


def remarks_of(counted: list[tuple[int, int, list[bytes]]]) -> tuple[Remark, ...]:
    """Return what the engine counted, as remarks."""
    return tuple(
        Remark(_KINDS[kind], count, tuple(map(RelPath, paths))) for kind, count, paths in counted
    )
