"""Compares arrived files with their metadata.

The engine does so; this module decides for a volatile file.
"""

import os
import stat
from array import array
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from huai_client.diff.files import chosen, digests
from huai_client.state.seen import SeenFile
from huai_client.tree import Finish
from huai_client.tree.handles import handle_path
from huai_native import _native
from huai_schema.codec.publish_rules import VOLATILE_BYTES
from huai_schema.entries import File
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath

_SECOND = 1_000_000_000
_THREADS = min(4, os.cpu_count() or 1)
_NO_DIGEST = bytes(DIGEST_BYTES)
_STEP = 20_000
"""Files for one call of the engine, which needs some memory for each."""


class Arrival(Enum):
    """The result for a requested file, in the order of the engine's verdicts."""

    ARRIVED = "arrived"
    MISSING = "missing"
    MISMATCH = "mismatch"


_ARRIVALS = (*Arrival, Arrival.ARRIVED)
_FINISHED = 3


class Verdicts(NamedTuple):
    """The results for a list of files."""

    arrivals: list[Arrival]
    finished: Sequence[File]
    """The files that have their final attributes."""


def no_check() -> None:
    """Continue: the default `check`."""


def verify(
    folder: int,
    files: Sequence[File],
    placed: Mapping[bytes, int] | None = None,
    *,
    cut: bool,
    finish: Finish | None = None,
    check: Callable[[], None] = no_check,
) -> Verdicts:
    """Return the results of comparing `files` with those below the directory `folder`.

    Compares size, time and digest.  `placed`: inodes, by path, of files that were there before; one
    that still has it counts as missing.  `cut`: the run that wrote there was interrupted.
    `finish`: sets their attributes.  An exception of `check`, which is called now and then, ends
    the comparison.
    """
    path = os.fsencode(handle_path(folder))
    run = dict(placed or {}), cut, finish
    steps = (files[begin : begin + _STEP] for begin in range(0, len(files), _STEP))
    codes = b"".join(_native.verify_arrived(path, some, run, _THREADS, check) for some in steps)
    arrivals = [_ARRIVALS[code] for code in codes]
    if codes.count(_FINISHED) == len(codes):
        return Verdicts(arrivals, files)
    finished = [position for position, code in enumerate(codes) if code == _FINISHED]
    return Verdicts(arrivals, chosen(files, finished))


def hash_undigested(folder: int, files: Sequence[File]) -> list[SeenFile]:
    """Return the digests of those `files` below the directory `folder` that state none.

    Leaves out empty files, and those that cannot be read or change meanwhile: damage to them is
    not noticed later, no more.
    """
    pairs = zip(files, digests(files), strict=True)
    undigested = [file for file, digest in pairs if digest is None and file.size]
    # No content has this digest, so the engine returns that of each file.
    rows = [(file.path, file.size, _time(folder, file.path), _NO_DIGEST) for file in undigested]
    scrub = _native.Scrub(os.fsencode(handle_path(folder)))
    try:
        _, findings = scrub.read(rows, _native.Pace(0, None))
    except OSError:
        return []
    current_digests = [(undigested[number], current) for number, (current, _) in findings]
    return [
        SeenFile(file.path, file.size, file.mtime, current[0])
        for file, current in current_digests
        if current is not None
    ]


def _time(folder: int, path: RelPath) -> int:
    """Return the time of a file in ns, 0 if it cannot be examined; it may lack nanoseconds."""
    try:
        return os.stat(path, dir_fd=folder, follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def by_arrival(
    files: Sequence[File], arrivals: Sequence[Arrival]
) -> tuple[Sequence[File], list[tuple[File, Arrival]]]:
    """Return the files that arrived, and the others with their results."""
    if arrivals.count(Arrival.ARRIVED) == len(files):
        return files, []
    positions = {True: array("L"), False: array("L")}
    for position, arrival in enumerate(arrivals):
        positions[arrival is Arrival.ARRIVED].append(position)
    rest = [(files[position], arrivals[position]) for position in positions[False]]
    return chosen(files, positions[True]), rest


def may_stand_for(status: os.stat_result, file: File) -> bool:
    """Return True if a volatile `file` arrived as a regular file, not too large or older."""
    if not stat.S_ISREG(status.st_mode) or status.st_size > VOLATILE_BYTES:
        return False
    if status.st_mtime_ns % _SECOND == 0:  # peers older than protocol 31 send whole seconds
        return status.st_mtime_ns // _SECOND >= file.mtime // _SECOND
    return status.st_mtime_ns >= file.mtime
