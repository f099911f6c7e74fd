"""Whether a file was replaced since it was read.

Rule: for files that are replaced as a whole.  One that is written in place may keep its stamp.
"""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

FileStamp: TypeAlias = tuple[int, ...]
"""Inode, mtime in nanoseconds and size; empty: there is no such file, or it cannot be reached."""

_Key = TypeVar("_Key", bound=Hashable)
_T = TypeVar("_T")


def file_stamp(path: Path) -> FileStamp:
    """Changes when the file at `path` is replaced."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


class FileCache(Generic[_Key, _T]):
    """What was read from files, by any key."""

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[FileStamp, _T]] = {}

    def get(self, key: _Key, path: Path, read: Callable[[], _T]) -> _T | None:
        """What `read` makes of the file at `path`, anew only if it was replaced; None: no file."""
        stamp = file_stamp(path)
        if not stamp:
            self._known.pop(key, None)
            return None
        found = self._known.get(key)
        if found is None or found[0] != stamp:
            found = self._known[key] = (stamp, read())
        return found[1]
