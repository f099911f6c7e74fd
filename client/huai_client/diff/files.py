"""Sequences of a plan's files, of which only a few are Python values at a time.

There may be millions.  They are rows of the engine, or plain lists.
"""

from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from huai_native import _native
from huai_schema.entries import Entry, File
from huai_schema.paths import RelPath

T = TypeVar("T", bound=Entry)
V = TypeVar("V")
_STEP = 10_000


def joined(*parts: Sequence[File]) -> Sequence[File]:
    """Return the files of all `parts`."""
    filled = [part for part in parts if part]
    if len(filled) < 2:
        return filled[0] if filled else []
    rows = [part for part in filled if isinstance(part, _native.Rows)]
    together = rows[0].joined(rows[1:]) if len(rows) == len(filled) else None
    return [*chain.from_iterable(filled)] if together is None else together


def paths(entries: Sequence[Entry]) -> Iterator[RelPath]:
    """Return the path of each entry."""
    return _column(entries, attrgetter("path"), _native.Rows.paths)


def sizes(files: Sequence[File]) -> Iterator[int]:
    """Return the size of each file in bytes."""
    return _column(files, attrgetter("size"), _native.Rows.sizes)


def digests(files: Sequence[File]) -> Iterator[bytes | None]:
    """Return the digest of each file, or None."""
    return _column(files, attrgetter("digest"), _native.Rows.digests)


def _column(
    entries: Sequence[Any],
    of_entry: Callable[[Any], V],
    of_rows: Callable[["_native.Rows[Any]"], Sequence[V]],
) -> Iterator[V]:
    """Yield an attribute of each entry; rows of the engine are read in steps."""
    if isinstance(entries, _native.Rows):
        steps = (entries[begin : begin + _STEP] for begin in range(0, len(entries), _STEP))
        return chain.from_iterable(map(of_rows, steps))
    return map(of_entry, entries)


def chosen(files: Sequence[T], positions: Sequence[int]) -> Sequence[T]:
    """Return the entries at `positions`, which must be sorted."""
    if len(positions) == len(files):
        return files
    if isinstance(files, _native.Rows):
        return files.pick(positions)
    return [files[position] for position in positions]


def within(files: Sequence[T], included: Container[RelPath]) -> Sequence[T]:
    """Return the entries whose path is in `included`."""
    positions = (position for position, path in enumerate(paths(files)) if path in included)
    return chosen(files, array("L", positions))


def without(files: Sequence[File], excluded: Container[RelPath]) -> Sequence[File]:
    """Return the files whose path is not in `excluded`."""
    positions = (position for position, path in enumerate(paths(files)) if path not in excluded)
    return chosen(files, array("L", positions))
