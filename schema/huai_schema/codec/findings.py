"""Decoding the findings of the engine, which compares a tree on disk with a snapshot."""

from collections.abc import Iterator
from functools import cache
from struct import Struct
from typing import NamedTuple

MATCH, MISSING, EXTRANEOUS, EXTRANEOUS_DIRECTORY, UNREADABLE_DIRECTORY = 1, 2, 3, 4, 6
"""Kinds of records; all others are of an unreadable leaf."""
MOUNT_POINT = -1
"""The number of a mount point, which is not entered, in place of an errno."""
_RECORD = Struct("<BBxxIiQ")
_ATTRIBUTES = ("type", "size", "mtime", "mode", "owner", "group", "target", "link")


class Record(NamedTuple):
    """One finding; the expected entries of `MATCH` and `MISSING` come apart, in this order."""

    kind: int
    attributes: int
    """One bit for each of `_ATTRIBUTES` that differs."""
    text_end: int
    """The end of its part of the text."""
    errno: int
    missing: int
    """The number of missing entries."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the attributes that differ."""
        return _attributes(self.attributes)


@cache
def _attributes(bits: int) -> frozenset[str]:
    return frozenset(name for bit, name in enumerate(_ATTRIBUTES) if bits >> bit & 1)


def decode_records(records: bytes, text: bytes) -> Iterator[tuple[Record, bytes]]:
    """Yield each record with its part of `text`: a path; empty for expected entries."""
    begin = 0
    for record in map(Record._make, _RECORD.iter_unpack(records)):
        yield record, text[begin : record.text_end]
        begin = record.text_end
