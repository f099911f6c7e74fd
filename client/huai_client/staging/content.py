"""Does what arrived fit its metadata?

The engine decides it; this module does for a volatile file.
"""

import os
import stat
from array import array
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from huai_client.diff.files import chosen
from huai_client.tree import Finish
from huai_client.tree.handles import handle_path
from huai_native import _native
from huai_schema.codec.publish_rules import VOLATILE_BYTES
from huai_schema.entries import File

_SECOND = 1_000_000_000
_THREADS = min(4, os.cpu_count() or 1)
_STEP = 20_000
"""Files that the engine is handed at a time: it needs some memory for each."""


class Arrival(Enum):
    """What became of a file that was asked for; in the order of the engine's verdicts."""

    ARRIVED = "arrived"
    MISSING = "missing"
    MISMATCH = "mismatch"


_ARRIVALS = (*Arrival, Arrival.ARRIVED)
_FINISHED = 3


class Verdicts(NamedTuple):
    """What became of files."""

    arrivals: list[Arrival]
    finished: Sequence[File]
    """Those that have the attributes which they are published with."""


def go_on() -> None:
    """Ends nothing."""


def verify(
    folder: int,
    files: Sequence[File],
    placed: Mapping[bytes, int] | None = None,
    *,
    cut: bool,
    finish: Finish | None = None,
    check: Callable[[], None] = go_on,
) -> Verdicts:
    """Whether each of `files` is below the directory `folder`, with its size, time and digest.

    `placed`: inodes by path, which are no arrivals.  `cut`: the run that wrote there was
    interrupted.  `finish`: what their attributes are known by.  An exception of `check`, which is
    called now and then, ends it.
    """
    path = os.fsencode(handle_path(folder))
    run = dict(placed or {}), cut, finish
    steps = (files[begin : begin + _STEP] for begin in range(0, len(files), _STEP))
    found = b"".join(_native.verify_arrived(path, some, run, _THREADS, check) for some in steps)
    arrivals = [_ARRIVALS[each] for each in found]
    finished = [place for place, each in enumerate(found) if each == _FINISHED]
    return Verdicts(arrivals, chosen(files, finished))


def by_arrival(
    files: Sequence[File], arrivals: Sequence[Arrival]
) -> tuple[Sequence[File], list[tuple[File, Arrival]]]:
    """The files that arrived, and the others with what became of them."""
    places = {True: array("L"), False: array("L")}
    for place, arrival in enumerate(arrivals):
        places[arrival is Arrival.ARRIVED].append(place)
    others = [(files[place], arrivals[place]) for place in places[False]]
    return chosen(files, places[True]), others


def may_stand_for(found: os.stat_result, file: File) -> bool:
    """Whether what arrived for a volatile `file` may be published although it is another one."""
    if not stat.S_ISREG(found.st_mode) or found.st_size > VOLATILE_BYTES:
        return False
    if found.st_mtime_ns % _SECOND == 0:  # peers older than protocol 31 send whole seconds
        return found.st_mtime_ns // _SECOND >= file.mtime // _SECOND
    return found.st_mtime_ns >= file.mtime
