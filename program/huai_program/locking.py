"""Allows one run at a time by an advisory lock on a file, with the holder's process id in it.

The kernel drops the lock when its holder dies, so a left-over file never blocks another run.
"""

import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from huai_schema.errors import ExitCode, HuaiError

T = TypeVar("T")
_POLL_SECONDS = 0.1
_MODE = 0o600
_PROCESS = rb"[1-9][0-9]{0,8}"


class LockedError(HuaiError):
    """An error because another run holds the lock."""

    exit_code = ExitCode.LOCKED


@contextmanager
def locked(path: Path, *, wait: float = 0) -> Iterator[None]:
    """Hold the lock at `path`, with our process id in it; the file is made if missing, and stays.

    Raises `LockedError` if it is not free within `wait` seconds, `OSError` if the file cannot be
    opened or made.
    """
    handle = take_within(lambda: _acquire(path), wait)
    if handle is None:
        raise LockedError(
            f"{path}: another run holds the lock (process {holder(path) or 'unknown'})",
            hint="run again when it has ended, or let huai wait with --wait TIME",
        )
    try:
        with suppress(OSError):  # on a full disk: the process id is only information
            os.ftruncate(handle, 0)
            os.pwrite(handle, b"%d\n" % os.getpid(), 0)
        try:
            yield
        finally:
            with suppress(OSError):  # on a disk that became read-only: the same
                os.ftruncate(handle, 0)
    finally:
        # A program that another thread is starting shares the handle until it executes.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def take_within(take: Callable[[], T | None], wait: float) -> T | None:
    """Call `take` until it returns a value or `wait` seconds are over; return the value or None."""
    deadline = time.monotonic() + wait
    while (value := take()) is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return value


def open_lock(path: Path | bytes, *, folder: int | None = None, mode: int = _MODE) -> int:
    """Open a lock file, created if it is missing, without locking it; return its descriptor.

    `path` is relative to `folder`, the descriptor of a directory, if given.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, mode, dir_fd=folder)


def try_lock(handle: int) -> bool:
    """Lock the open file; return False if another handle has the lock."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder(path: Path) -> int | None:
    """Return the process id in the first line of `path`, None unless that process exists."""
    try:
        text = path.read_bytes().partition(b"\n")[0].strip()
    except OSError:
        return None
    process = int(text) if re.fullmatch(_PROCESS, text) else None
    return process if process is not None and _alive(process) else None


def _alive(process: int) -> bool:
    """Return True if a process exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _restrict_mode(handle: int) -> None:
    """Remove others' permissions: a user who can open the file can hold the lock."""
    if stat.S_IMODE(os.fstat(handle).st_mode) & ~_MODE:
        with suppress(PermissionError):  # the file of another user, who may hold the lock
            os.fchmod(handle, _MODE)


def _acquire(path: Path) -> int | None:
    """Return the handle of the locked file; None if another run has it, or just deleted it."""
    handle = open_lock(path)
    try:
        _restrict_mode(handle)
        # The former holder may have deleted the file, and another process created a new one.
        if try_lock(handle) and os.path.samestat(os.fstat(handle), os.stat(path)):
            return handle
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None
