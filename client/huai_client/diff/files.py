"""Files of a plan, of which only few are values of Python at a time: there may be millions.

They are rows of the engine, or plain lists, or several of both.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import overload

from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import RelPath

_STEP = 10_000


class Joined(Sequence[File]):
    """Sequences of files, one after the other."""

    def __init__(self, parts: Iterable[Sequence[File]]) -> None:
        """`parts` have files, and stay as they are."""
        self.parts = [*parts]
        self._ends = [*accumulate(map(len, self.parts))]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, place: int) -> File: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[File]: ...
    def __getitem__(self, place: int | slice) -> File | Sequence[File]:
        if isinstance(place, slice):
            return chosen(self, range(*place.indices(len(self))))
        number = range(len(self))[place]
        part = bisect_right(self._ends, number)
        return self.parts[part][number - self._ends[part]]

    def __iter__(self) -> Iterator[File]:
        for part in self.parts:
            yield from part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment] # as a list


def joined(*parts: Sequence[File]) -> Sequence[File]:
    """The files of all `parts`."""
    found = [each for part in parts for each in parts_of(part) if each]
    return found[0] if len(found) == 1 else Joined(found) if found else []


def parts_of(files: Sequence[File]) -> list[Sequence[File]]:
    """The rows and lists that `files` are made of."""
    return files.parts if isinstance(files, Joined) else [files]


def paths(files: Sequence[File]) -> Iterator[RelPath]:
    """The path of each."""
    for rows in _steps(files):
        if isinstance(rows, _native.Rows):
            yield from map(RelPath, rows.paths())
        else:
            yield from (file.path for file in rows)


def sizes(files: Sequence[File]) -> Iterator[int]:
    """The bytes of each."""
    for rows in _steps(files):
        if isinstance(rows, _native.Rows):
            yield from rows.sizes()
        else:
            yield from (file.size for file in rows)


def chosen(files: Sequence[File], places: Sequence[int]) -> Sequence[File]:
    """Those at `places`, part by part."""
    if len(places) == len(files):
        return files
    if isinstance(files, _native.Rows):
        return files.pick(places)
    if not isinstance(files, Joined):
        return [files[place] for place in places]
    found: list[Sequence[File]] = []
    before = 0
    for part in files.parts:
        own = array("L", (each - before for each in places if 0 <= each - before < len(part)))
        found.append(chosen(part, own))
        before += len(part)
    return joined(*found)


def having(files: Sequence[File], is_meant: Callable[[RelPath], bool]) -> Sequence[File]:
    """Those whose path `is_meant`."""
    found = array("L")
    found.extend(place for place, path in enumerate(paths(files)) if is_meant(path))
    return chosen(files, found)


def parted(
    files: Sequence[File], is_meant: Callable[[File], bool]
) -> tuple[Sequence[File], Sequence[File]]:
    """Those that are meant, and all others."""
    meant, others = array("L"), array("L")
    for place, file in enumerate(files):
        (meant if is_meant(file) else others).append(place)
    return chosen(files, meant), chosen(files, others)


def found_by(files: Sequence[File], find: Callable[[Sequence[File]], list[int]]) -> Sequence[File]:
    """Those at the places that `find` gives of some of them at a time."""
    found, before = array("L"), 0
    for rows in _steps(files):
        found.extend(before + place for place in find(rows))
        before += len(rows)
    return chosen(files, found)


def _steps(files: Sequence[File]) -> Iterator[Sequence[File]]:
    for part in parts_of(files):
        yield from (part[begin : begin + _STEP] for begin in range(0, len(part), _STEP))
