"""The differences between a path and its metadata."""

from enum import StrEnum
from typing import NamedTuple

from huai_schema.entries import Entry
from huai_schema.paths import RelPath


class Kind(StrEnum):
    """The kind of a difference."""

    MISSING = "missing"
    EXTRANEOUS = "extraneous"
    DIFFERS = "differs"
    UNREADABLE = "unreadable"


class Difference(NamedTuple):
    """A path that differs from the snapshot."""

    path: RelPath
    kind: Kind
    attributes: tuple[str, ...] = ()
    """For `DIFFERS`, sorted: the names of `Candidate.differing`, and "digest"."""
    reason: str = ""
    """The reason for `UNREADABLE`."""


class FoundDifference(NamedTuple):
    """A difference, and the expected entry unless the path is extraneous."""

    difference: Difference
    expected: Entry | None = None
