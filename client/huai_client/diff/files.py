"""Files of a plan, of which only few are values of Python at a time: there may be millions.

They are rows of the engine, or plain lists.
"""

from array import array
from collections.abc import Container, Iterator, Sequence
from itertools import chain
from operator import attrgetter, methodcaller
from typing import Any

from huai_native import _native
from huai_schema.entries import Entry, File
from huai_schema.paths import RelPath

_STEP = 10_000


def joined(*parts: Sequence[File]) -> Sequence[File]:
    """The files of all `parts`."""
    found = [part for part in parts if part]
    if len(found) < 2:
        return found[0] if found else []
    rows = [part for part in found if isinstance(part, _native.Rows)]
    together = rows[0].joined(rows[1:]) if len(rows) == len(found) else None
    return [*chain.from_iterable(found)] if together is None else together


def paths(entries: Sequence[Entry]) -> Iterator[RelPath]:
    """The path of each."""
    return _column(entries, "path")


def sizes(files: Sequence[File]) -> Iterator[int]:
    """The bytes of each."""
    return _column(files, "size")


def digests(files: Sequence[File]) -> Iterator[bytes | None]:
    """The digest of each."""
    return _column(files, "digest")


def _column(entries: Sequence[Any], name: str) -> Iterator[Any]:
    if isinstance(entries, _native.Rows):
        return chain.from_iterable(map(methodcaller(f"{name}s"), _steps(entries)))
    return map(attrgetter(name), entries)


def chosen(files: Sequence[File], places: Sequence[int]) -> Sequence[File]:
    """Those at `places`, which are in order."""
    if len(places) == len(files):
        return files
    if isinstance(files, _native.Rows):
        return files.pick(places)
    return [files[place] for place in places]


def within(files: Sequence[File], wanted: Container[RelPath]) -> Sequence[File]:
    """Those whose path is `wanted`."""
    found = array("L")
    for place, path in enumerate(paths(files)):
        if path in wanted:
            found.append(place)
    return chosen(files, found)


def without(files: Sequence[File], unwanted: Container[RelPath]) -> Sequence[File]:
    """Those whose path is not `unwanted`."""
    found = array("L")
    for place, path in enumerate(paths(files)):
        if path not in unwanted:
            found.append(place)
    return chosen(files, found)


def _steps(files: Sequence[File]) -> Iterator[Sequence[File]]:
    return (files[begin : begin + _STEP] for begin in range(0, len(files), _STEP))
