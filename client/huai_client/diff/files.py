"""Files of a plan, of which only few are values of Python at a time: there may be millions.

They are rows of the engine, or plain lists.
"""

from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import TypeVar

from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import RelPath

_STEP = 10_000
_Files = TypeVar("_Files", Sequence[File], "_native.Rows[File]")


def joined(*parts: Sequence[File]) -> Sequence[File]:
    """The files of all `parts`."""
    found = [part for part in parts if part]
    if len(found) < 2:
        return found[0] if found else []
    rows = [part for part in found if isinstance(part, _native.Rows)]
    together = rows[0].joined(rows[1:]) if len(rows) == len(found) else None
    return [*chain.from_iterable(found)] if together is None else together


def paths(files: Sequence[File]) -> Iterator[RelPath]:
    """The path of each."""
    if isinstance(files, _native.Rows):
        return chain.from_iterable(map(_native.Rows.paths, _steps(files)))  # type: ignore[arg-type]
    return map(attrgetter("path"), files)


def sizes(files: Sequence[File]) -> Iterator[int]:
    """The bytes of each."""
    if isinstance(files, _native.Rows):
        return chain.from_iterable(map(_native.Rows.sizes, _steps(files)))
    return map(attrgetter("size"), files)


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


def found_by(
    files: Sequence[File], find: Callable[[Sequence[File]], Iterable[int]]
) -> Sequence[File]:
    """Those at the places that `find` gives of some of them at a time."""
    found = array("L")
    for number, some in enumerate(_steps(files)):
        before = number * _STEP
        found.extend(array("L", [before + place for place in find(some)]))
    return chosen(files, found)


def _steps(files: _Files) -> Iterator[_Files]:
    return (files[begin : begin + _STEP] for begin in range(0, len(files), _STEP))
