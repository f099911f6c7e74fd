"""What differs between a path and its metadata."""

from enum import StrEnum
from typing import NamedTuple

from huai_schema.entries import Entry
from huai_schema.paths import RelPath


class Kind(StrEnum):
    """How a path differs."""

    MISSING = "missing"
    EXTRANEOUS = "extraneous"
    DIFFERS = "differs"
    UNREADABLE = "unreadable"


class Difference(NamedTuple):
    """One path that is not as the snapshot says."""

    path: RelPath
    kind: Kind
    attributes: tuple[str, ...] = ()
    """For `DIFFERS`, sorted: the names of `Candidate.differing`, and "digest"."""
    reason: str = ""
    """For `UNREADABLE`: why."""


class FoundDifference(NamedTuple):
    """A difference, and the entry that should stand there; None for an extraneous path."""

    difference: Difference
    wanted: Entry | None = None
