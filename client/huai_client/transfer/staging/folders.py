"""Directories by handle: open, make, list and empty them without ever following a symlink.

Knows nothing of staging's layout.  Paths are walked a component at a time, so that no
symlink planted anywhere is followed and depth is bounded by nothing but the disk.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from huai_client.tree.reserved import open_own
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import join, parent, show

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_POLL = 0.1


class StagingError(HuaiError):
    """The staging area cannot be used."""

    exit_code = ExitCode.DESTINATION


class StagingBusyError(HuaiError):
    """Another run, or an rsync that outlived one, still writes here."""

    exit_code = ExitCode.LOCKED


def open_root(root: Path) -> int:
    """A handle of `root` = DEST/NAME/NAME, its last two directories made if absent.

    Raises `StagingError` if DEST is no directory that we may write, `NotOursError` if others may
    write to either of the two.
    """
    try:
        dest = os.open(root.parent.parent, _DIRECTORY)
        try:
            path = join(os.fsencode(root.parent.name), os.fsencode(root.name))
            handle = open_own(dest, root.parent.parent, path)
            try:
                if os.fstat(handle).st_dev != os.fstat(dest).st_dev:
                    raise StagingError(
                        f"{root} is on another file system than the destination", hint="unmount it"
                    )
                os.fchmod(handle, 0o700)
            except BaseException:
                os.close(handle)
                raise
        finally:
            os.close(dest)
    except OSError as error:
        raise StagingError(
            f"{root}: {error.strerror}",
            hint="the destination has to be a directory that huai may write, not a symlink",
        ) from error
    return handle


def make_directory(handle: int, name: bytes) -> int:
    """A handle of the directory `name` in `handle`, made (0700) if it is not there."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=handle)
    return os.open(name, _DIRECTORY, dir_fd=handle)


def own_directory(handle: int, name: bytes) -> int:
    """Like `make_directory`; whatever else is in the way inside our own folder goes."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=handle)
    return make_directory(handle, name)


@contextmanager
def opened(handle: int, path: bytes, *, make: bool = False) -> Iterator[int]:
    """A handle of the directory `path` below `handle`, closed at the end."""
    current = os.dup(handle)
    try:
        for name in path.split(b"/") if path else ():
            upper = current
            current = make_directory(upper, name) if make else open_directory(upper, name)
            os.close(upper)
        yield current
    finally:
        os.close(current)


def open_directory(handle: int, name: bytes) -> int:
    """A handle of the directory `name` in `handle`; `OSError` if it is a symlink."""
    return os.open(name, _DIRECTORY, dir_fd=handle)


def directories(handle: int, top: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    """Each directory from `top` (a name in `handle`) down, and its leaves, parents first.

    Costs the same at every depth: goes down by names and up by "..", in folders of ours alone.
    """
    current = open_directory(handle, top)
    try:
        path = top
        leaves, folders = _inside(current)
        pending = [folders]
        yield path, leaves
        while True:
            if pending[-1]:
                name = pending[-1].pop()
                path = join(path, name)
                current = _instead(current, open_directory(current, name))
                leaves, folders = _inside(current)
                pending.append(folders)
                yield path, leaves
                continue
            pending.pop()
            if not pending:
                return
            path = parent(path)
            current = _instead(current, open_directory(current, b".."))
    finally:
        os.close(current)


def _instead(handle: int, other: int) -> int:
    os.close(handle)
    return other


def _inside(handle: int) -> tuple[list[bytes], list[bytes]]:
    """What a directory holds: leaves, and directories."""
    leaves: list[bytes] = []
    folders: list[bytes] = []
    with os.scandir(handle) as found:
        for entry in found:
            is_directory = entry.is_dir(follow_symlinks=False)
            (folders if is_directory else leaves).append(os.fsencode(entry.name))
    return leaves, folders


def remove(handle: int, name: bytes) -> None:
    """Remove `name` in `handle` with all that it holds; nothing there is fine."""
    try:
        is_directory = stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    if not is_directory:
        os.unlink(name, dir_fd=handle)
        return
    path, current = [name], open_directory(handle, name)
    try:
        pending = [_emptied(current)]
        while path:
            if pending[-1]:
                path.append(pending[-1].pop())
                current = _instead(current, open_directory(current, path[-1]))
                pending.append(_emptied(current))
                continue
            pending.pop()
            done = path.pop()
            upper = open_directory(current, b"..") if path else os.dup(handle)
            current = _instead(current, upper)
            os.rmdir(done, dir_fd=current)
    finally:
        os.close(current)


def _emptied(handle: int) -> list[bytes]:
    """Remove the leaves of a directory; what is left in it."""
    leaves, folders = _inside(handle)
    for leaf in leaves:
        os.unlink(leaf, dir_fd=handle)
    return folders


def names(handle: int) -> list[bytes]:
    """What the directory `handle` holds."""
    # Btrfs shows a handle nothing that was made after it was opened, or rewound.
    os.lseek(handle, 0, os.SEEK_SET)
    return [os.fsencode(name) for name in os.listdir(handle)]


@contextmanager
def locked(handle: int, name: bytes, patience: float) -> Iterator[int]:
    """Hold the lock file `name`; yields its handle, which children may inherit and so hold on.

    Raises `StagingBusyError` after `patience` seconds.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(name, flags, 0o600, dir_fd=handle)
    try:
        for _ in range(max(1, int(patience / _POLL))):
            if _try_lock(lock):
                break
            time.sleep(_POLL)
        else:
            raise StagingBusyError(
                f"the staging area is in use (lock file {show(name)})",
                hint="wait for the other run or for its last rsync to end",
            )
        yield lock
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
