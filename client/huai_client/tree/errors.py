"""What can go wrong with one path of a tree, and what makes going on pointless.

Rule: an `OSError` never leaves the package; `at` turns it into one of these.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, show

_STORAGE = {
    errno.ENOSPC: "free some space there and run again; the next run goes on from here",
    errno.EDQUOT: "raise the quota and run again; the next run goes on from here",
    errno.EROFS: "the file system is read-only: look into the kernel's log, then remount it",
    errno.EIO: "the disk fails: look into the kernel's log before the next run",
}
_REASONS = {
    errno.EISDIR: "a directory is in the way",
    errno.ENOTDIR: "a component of the path is not a directory, or is a symlink",
    errno.ELOOP: "a symlink is in the way",
    errno.EXDEV: "lies on another file system than DEST, and a tree has to be one: "
    "unmount it, or make it a module of its own",
    errno.EPERM: "not permitted: immutable (see lsattr), or owned by another user",
}


class PathError(HuaiError):
    """One path could not be changed; the others may go on."""

    exit_code: ClassVar[ExitCode] = ExitCode.FILE_IO

    def __init__(self, path: RelPath, reason: str) -> None:
        """`reason` reads on after the path."""
        super().__init__(f"{show(path)}: {reason}", hint="repair the path by hand and run again")
        self.path = path
        self.reason = reason


def is_other_file_system(error: PathError) -> bool:
    """Whether a rename failed because it would have crossed a border of file systems (EXDEV).

    On an overlay that border runs between a directory of a lower layer and everything else.
    """
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno == errno.EXDEV


class NotEmptyError(PathError):
    """A directory stays because it holds what huai did not put there."""

    def __init__(self, path: RelPath) -> None:
        """`path` is the directory."""
        super().__init__(path, "the directory is not empty")


class StorageError(HuaiError):
    """The file system takes no more changes: every further path would fail as well."""

    exit_code: ClassVar[ExitCode] = ExitCode.FILE_IO

    def __init__(self, path: RelPath, code: int) -> None:
        """`code` is the errno of the failed call."""
        super().__init__(f"{show(path)}: {os.strerror(code)}", hint=_STORAGE[code])
        self.path = path
        self.code = code


@contextmanager
def at(path: RelPath) -> Iterator[None]:
    """Every `OSError` inside becomes a `PathError` of `path`, or a `StorageError`."""
    try:
        yield
    except OSError as error:
        code = error.errno or errno.EIO
        if code in _STORAGE:
            raise StorageError(path, code) from error
        reason = _REASONS.get(code) or os.strerror(code)
        raise PathError(path, reason) from error
