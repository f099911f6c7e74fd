"""What the engine says of paths that it looked at: records of fixed length.

Pure.  A record may have a path beside it.
"""

from functools import cache
from struct import Struct
from typing import NamedTuple

RECORD = Struct("<BBxxIiQ")
"""The fields of a `Record`."""
MATCH, MISSING = 1, 2
"""Of the kinds of records."""

_ATTRIBUTES = ("type", "size", "mtime", "mode", "owner", "group", "target", "link")


class Record(NamedTuple):
    """What is said of one path, or of several that are missing."""

    kind: int
    attributes: int
    """One bit for each of `_ATTRIBUTES` that differs."""
    text_end: int
    errno: int
    missing: int
    """How many entries are."""


@cache
def attributes(bits: int) -> frozenset[str]:
    """The names of the attributes that differ."""
    return frozenset(name for bit, name in enumerate(_ATTRIBUTES) if bits >> bit & 1)
