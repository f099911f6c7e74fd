"""Errors of one path (`PathError`), and of the whole file system (`StorageError`).

Rule: no `OSError` leaves the package; `at` turns each into one of these.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from huai_program.disk_hints import DISK_HINTS
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath, show

_STORAGE = {
    errno.ENOSPC: "free some space there and run again; the next run continues from here",
    errno.EDQUOT: "raise the quota and run again; the next run continues from here",
    **{each: DISK_HINTS[each] for each in (errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)},
    errno.ENOMEM: "the machine is short of memory: run again once there is some",
}
_REASONS = {
    errno.EISDIR: "a directory is in the way",
    errno.ENOTDIR: "a component of the path is not a directory, or is a symlink",
    errno.ELOOP: "a symlink is in the way",
    errno.EXDEV: "is on another file system than DEST or in a bind mount, which a tree must not "
    "contain: unmount it, or make it a separate module",
    errno.EPERM: "not permitted: immutable (see lsattr), or owned by another user",
}


class PathError(HuaiError):
    """A single path cannot be read or changed."""

    def __init__(self, path: RelPath, reason: str, code: int = 0) -> None:
        """Make an error with the message "PATH: REASON"; `code` is an errno."""
        super().__init__(f"{show(path)}: {reason}", hint="repair the path by hand and run again")
        self.path = path
        self.reason = reason
        self.code = code


def is_other_file_system(error: PathError) -> bool:
    """Return True if a rename failed because the new path is on another file system.

    On an overlay, renaming a directory of a lower layer fails in the same way.
    """
    return error.code == errno.EXDEV


class NotEmptyError(PathError):
    """A directory cannot be removed because it is not empty."""

    def __init__(self, path: RelPath) -> None:
        super().__init__(path, "the directory is not empty")


class StorageError(HuaiError):
    """The file system or the process lacks something that every path needs."""

    def __init__(self, path: RelPath, code: int) -> None:
        """Make an error for a call that failed with errno `code`."""
        super().__init__(f"{show(path)}: {os.strerror(code)}", hint=_STORAGE[code])
        self.path = path
        self.code = code


def is_storage(code: int) -> bool:
    """Return True if a call that failed with errno `code` would fail at every other path."""
    return code in _STORAGE


@contextmanager
def at(path: RelPath) -> Iterator[None]:
    """Turn each `OSError` of the block into a `PathError` of `path` or a `StorageError`."""
    try:
        yield
    except OSError as error:
        raise path_error(path, error.errno or errno.EIO) from error


def path_error(path: RelPath, code: int) -> PathError | StorageError:
    """Return the error for a call that failed at `path` with errno `code`."""
    if is_storage(code):
        return StorageError(path, code)
    return PathError(path, _REASONS.get(code) or os.strerror(code), code)


def moving(path: RelPath) -> PathError:
    """Return the error for reading a path that is about to be moved."""
    return PathError(path, "about to be moved")
