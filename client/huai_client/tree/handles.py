"""Directories by handle: opened, made and listed without following any symlink.

Paths are opened one component at a time, so that no symlink in them is followed and they may be
longer than PATH_MAX.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from huai_native import _native
from huai_schema.paths import join, parent

HANDLES = Path("/proc/self/fd")
"""The directory with a path for each open handle (proc(5))."""
_LEAF = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def handle_path(handle: int) -> Path:
    """Return a path of the opened inode, also for O_PATH handles, which fchmod(2) refuses."""
    return HANDLES / str(handle)


def make_directory(handle: int, name: bytes) -> int:
    """Return a handle of the directory `name` in `handle`, which is made (0700) if missing."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=handle)
    return os.open(name, DIRECTORY, dir_fd=handle)


def own_directory(handle: int, name: bytes) -> int:
    """Return a handle of huai's own directory `name`; removes anything else of that name first."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=handle)
    return make_directory(handle, name)


@contextmanager
def closing(handle: int) -> Iterator[int]:
    """Close `handle` after the block."""
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def opened(handle: int, path: bytes, *, make: bool = False) -> Iterator[int]:
    """Open the directory `path` below `handle` for the block; `make` creates what is missing.

    Raises `OSError` for a symlink.
    """
    current = os.dup(handle)
    try:
        for name in path.split(b"/") if path else ():
            upper = current
            current = make_directory(upper, name) if make else open_directory(upper, name)
            os.close(upper)
        yield current
    finally:
        os.close(current)


@contextmanager
def opened_file(handle: int, name: bytes, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open the regular file `name` in `handle` for the block.

    Raises `OSError` for anything else; it is never followed, and does not block on a FIFO.
    """
    with closing(os.open(name, flags | _LEAF, dir_fd=handle)) as file:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        yield file


def open_directory(handle: int, name: bytes) -> int:
    """Return a handle of the directory `name` in `handle`; raises `OSError` for a symlink."""
    return os.open(name, DIRECTORY, dir_fd=handle)


def directories(handle: int, top: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield each directory from `top` (a name in `handle`) down with its leaves, parents first.

    Goes down by name and up by "..", so that the cost does not depend on depth; only for
    directories that no other process can change.
    """
    current = open_directory(handle, top)
    try:
        path = top
        leaves, folders = list_directory(current)
        pending = [folders]
        yield path, leaves
        while True:
            if pending[-1]:
                name = pending[-1].pop()
                path = join(path, name)
                current = _instead(current, open_directory(current, name))
                leaves, folders = list_directory(current)
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


def own_files(handle: int) -> set[bytes]:
    """Return the names of the files in huai's own directory `handle`; delete everything else in it.

    Files with several hardlinks are deleted too: a change would reach their other names.
    """
    files = {*list_names(handle)}
    for name in [*files]:
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            _native.remove_all(handle, name)
            files.discard(name)
    return files


def _instead(handle: int, other: int) -> int:
    """Close `handle`, and return `other`."""
    os.close(handle)
    return other


def list_directory(handle: int) -> tuple[list[bytes], list[bytes]]:
    """Return the names in a directory, unsorted: leaves, then subdirectories.

    `handle` may be an O_PATH one, which cannot be read itself.
    """
    leaves: list[bytes] = []
    folders: list[bytes] = []
    # scandir of a path of bytes yields names as bytes; of a handle, as text.
    with os.scandir(os.fsencode(handle_path(handle))) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else leaves).append(entry.name)
    return leaves, folders


def list_names(handle: int) -> list[bytes]:
    """Return the names in the directory `handle`."""
    # On Btrfs a handle shows no names that were made after it was opened or rewound.
    os.lseek(handle, 0, os.SEEK_SET)
    return [os.fsencode(name) for name in os.listdir(handle)]
