"""Detection of replaced files, and a cache of what was read from them.

Rule: for files that are replaced as a whole.  A file written in place may keep its stamp.
"""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

FileStamp: TypeAlias = tuple[int, ...]
"""The inode, mtime in nanoseconds and size; empty if the file is missing or out of reach."""

_Key = TypeVar("_Key", bound=Hashable)
_T = TypeVar("_T")


def file_stamp(path: Path) -> FileStamp:
    """Return a stamp that changes when the file at `path` is replaced; empty without the file."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


class FileCache(Generic[_Key, _T]):
    """A cache of values that are read from files."""

    def __init__(self) -> None:
        self._cached: dict[_Key, tuple[FileStamp, _T]] = {}

    def get(self, key: _Key, path: Path, read: Callable[[], _T]) -> _T | None:
        """Return the value that `read` makes of the file at `path`; None if the file is missing.

        Calls `read` only the first time for `key`, and after the file was replaced.
        """
        stamp = file_stamp(path)
        if not stamp:
            self._cached.pop(key, None)
            return None
        cached = self._cached.get(key)
        if cached is None or cached[0] != stamp:
            cached = self._cached[key] = (stamp, read())
        return cached[1]
