"""One run at a time: an advisory lock on a file, with the holder's process id in it.

The kernel drops the lock when its holder dies, so a left-over file never blocks anybody.
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
_PROCESS = re.compile(rb"[1-9][0-9]{0,8}")


class LockedError(HuaiError):
    """Another run holds the lock."""

    exit_code = ExitCode.LOCKED


@contextmanager
def locked(path: Path, *, wait: float = 0) -> Iterator[None]:
    """Hold the lock at `path`; raises `LockedError` if it is not free within `wait` seconds."""
    handle = take_within(lambda: _acquire(path), wait)
    if handle is None:
        raise LockedError(
            f"{path}: another run holds the lock (process {holder(path) or 'unknown'})",
            hint="run again when it has ended, or let huai wait with --wait TIME",
        )
    try:
        with suppress(OSError):  # a full disk: the process id in the file is only information
            os.ftruncate(handle, 0)
            os.pwrite(handle, b"%d\n" % os.getpid(), 0)
        try:
            yield
        finally:
            with suppress(OSError):  # a disk that became read-only: the same
                os.ftruncate(handle, 0)
    finally:
        # A program that another thread is just starting has the handle until it executes.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def take_within(take: Callable[[], T | None], wait: float) -> T | None:
    """Call `take` until it returns a value or `wait` seconds are over; returns the value."""
    deadline = time.monotonic() + wait
    while (taken := take()) is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return taken


def open_lock(path: Path | bytes, *, folder: int | None = None, mode: int = _MODE) -> int:
    """A handle of a lock file, made if it is missing; `path` is relative to `folder`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, mode, dir_fd=folder)


def try_lock(handle: int) -> bool:
    """Lock the opened file; False if another handle of it has the lock."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder(path: Path) -> int | None:
    """The id of the process that the first line of `path` names; None: unknown, or not running."""
    try:
        text = path.read_bytes().partition(b"\n")[0].strip()
    except OSError:
        return None
    process = int(text) if _PROCESS.fullmatch(text) else None
    return process if process is not None and _alive(process) else None


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _shut(handle: int) -> None:
    """Take the file's permissions from others: a user who can open it can hold the lock."""
    if stat.S_IMODE(os.fstat(handle).st_mode) & ~_MODE:
        with suppress(PermissionError):  # another user's, whom it then belongs to
            os.fchmod(handle, _MODE)


def _acquire(path: Path) -> int | None:
    """The locked file, or None if another run has it."""
    handle = open_lock(path)
    try:
        _shut(handle)
        # The former holder may have deleted the file, and another process made a new one.
        if try_lock(handle) and os.path.samestat(os.fstat(handle), os.stat(path)):
            return handle
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None
