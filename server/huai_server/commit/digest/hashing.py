"""Reading one file for its digest, and noticing if it changes meanwhile."""

import os
import stat
import time
from collections.abc import Callable
from typing import NamedTuple

from huai_native import _native
from huai_server.commit.digest.opening import birth_time, open_place, open_reading

_CHUNK = 1 << 20


_TICK = 10_000_000
"""Nanoseconds.  The clock by which the kernel dates a change ticks at least as often."""


class Identity(NamedTuple):
    """What tells one state of one file from every other."""

    device: int
    inode: int
    size: int
    mtime: int
    """Nanoseconds."""
    ctime: int
    """Nanoseconds."""


class ChangedError(Exception):
    """The file is not, or no longer, what the scan saw."""


class StoppedError(Exception):
    """The digest is not wanted any more."""


class Hashed(NamedTuple):
    """What is known of a file's content now."""

    digest: bytes
    birth: int | None
    """When the file was made, if the file system says so."""


def hash_file(root: int, path: bytes, expected: Identity, stopped: Callable[[], bool]) -> Hashed:
    """BLAKE3-256 of the file at `path` below the open directory `root`.

    Calls `stopped` after each chunk.  Raises `ChangedError` if, before or after reading, the file
    has another identity than the scan saw; `OSError` if it cannot be read; `StoppedError` as soon
    as `stopped` says True.
    """
    _let_tick(expected.ctime)
    # Relative to the root: an absolute path may be longer than the system allows.
    place = open_place(root, path)
    try:
        _check(place, expected)
        birth = birth_time(place)
        handle = open_reading(place)
    finally:
        os.close(place)
    try:
        hasher = _native.Blake3()
        while chunk := os.read(handle, _CHUNK):
            hasher.update(chunk)
            if stopped():
                raise StoppedError
        _check(handle, expected)
        return Hashed(hasher.digest(), birth)
    finally:
        os.close(handle)


def look_at(root: int, path: bytes, expected: Identity) -> int | None:
    """The time of birth of the file at `path`; its content is not opened.

    `ChangedError` and `OSError` as in `hash_file`.
    """
    place = open_place(root, path)
    try:
        _check(place, expected)
        return birth_time(place)
    finally:
        os.close(place)


def _let_tick(ctime: int) -> None:
    """Wait until a change to come gets another ctime than the last one."""
    left = ctime + _TICK - time.time_ns()
    if 0 < left <= _TICK:
        time.sleep(left / 1_000_000_000)


def _check(handle: int, expected: Identity) -> None:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or identify(status) != expected:
        raise ChangedError


def identify(status: os.stat_result) -> Identity:
    """The identity of a file as `stat` tells it."""
    return Identity(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )
