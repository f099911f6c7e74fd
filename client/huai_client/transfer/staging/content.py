"""Does what arrived fit its metadata?

The engine decides it; this module does for a volatile file.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from huai_client.tree.handles import handle_path
from huai_native import _native
from huai_schema.codec.publish_rules import VOLATILE_BYTES
from huai_schema.entries import File

_SECOND = 1_000_000_000
_THREADS = min(4, os.cpu_count() or 1)


class Arrival(Enum):
    """What became of a file that was asked for; in the order of the engine's verdicts."""

    ARRIVED = "arrived"
    MISSING = "missing"
    MISMATCH = "mismatch"


_VERDICTS = tuple(Arrival)


def go_on() -> None:
    """Ends nothing."""


def verify(
    folder: int,
    files: Iterable[File],
    placed: Mapping[bytes, int] | None = None,
    *,
    cut: bool,
    check: Callable[[], None] = go_on,
) -> list[Arrival]:
    """Whether each of `files` is below the directory `folder`, with its size, time and digest.

    `placed`: inodes by path, which are no arrivals.  `cut`: the run that wrote there was
    interrupted.  An exception of `check`, which is called now and then, ends it.
    """
    path = os.fsencode(handle_path(folder))
    run = dict(placed or {}), cut
    return [_VERDICTS[each] for each in _native.verify_arrived(path, files, run, _THREADS, check)]


def may_stand_for(found: os.stat_result, file: File) -> bool:
    """Whether what arrived for a volatile `file` may be published although it is another one."""
    if not stat.S_ISREG(found.st_mode) or found.st_size > VOLATILE_BYTES:
        return False
    if found.st_mtime_ns % _SECOND == 0:  # peers older than protocol 31 send whole seconds
        return found.st_mtime_ns // _SECOND >= file.mtime // _SECOND
    return found.st_mtime_ns >= file.mtime
