"""The files that responses are written to, below the folder of a run in the staging area.

Reached by directory handles, never through a symlink; made with the first byte.  A file gets its
time once it is complete, which tells it from a partial after a kill.
"""

import os
from collections import OrderedDict
from typing import Self

from huai_client.tree import handles
from huai_schema.paths import RelPath, basename, parent

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o600
_FOLDERS_MOST = 64
"""Directories that stay open: the files of one follow each other."""


class Folders:
    """The directories below the folder of a run, as a context manager."""

    def __init__(self, top: int) -> None:
        """`top` is a handle of the folder, which the caller closes."""
        self._top = top
        self._open: OrderedDict[bytes, int] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()

    def of(self, path: RelPath) -> int:
        """Return the directory that holds `path`, made if it is missing."""
        place = parent(path)
        handle = self._open.get(place)
        if handle is None:
            with handles.opened(self._top, place, make=True) as opened:
                handle = self._open[place] = os.dup(opened)
            if len(self._open) > _FOLDERS_MOST:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(place)
        return handle

    def drop(self, path: RelPath) -> None:
        """Remove the file at `path`."""
        os.unlink(basename(path), dir_fd=self.of(path))

    def stamp(self, path: RelPath, mtime: int) -> None:
        """Set the time of the file at `path`, in nanoseconds."""
        times = (mtime, mtime)
        os.utime(basename(path), ns=times, dir_fd=self.of(path), follow_symlinks=False)


class Target:
    """A file to write, as a `Sink`."""

    def __init__(self, folders: Folders, path: RelPath) -> None:
        self._folders = folders
        self._path = path
        self._handle = -1
        self._hole = 0
        """The end of the file, if it is in a hole: the file is extended to it."""

    def begin(self, position: int) -> None:
        """Open the file, and truncate it to `position` bytes."""
        if self._handle < 0:
            folder = self._folders.of(self._path)
            self._handle = os.open(basename(self._path), _WRITE, _MODE, dir_fd=folder)
        os.ftruncate(self._handle, position)
        self._hole = 0

    def write(self, position: int, data: bytes) -> None:
        """Write `data` at `position`; a block of zeros is left out, for a hole."""
        if not data[0] and data.count(0) == len(data):
            self._hole = position + len(data)
            return
        self._hole = 0
        while data:
            count = os.pwrite(self._handle, data, position)
            position, data = position + count, data[count:]

    @property
    def is_open(self) -> bool:
        """True if anything may have been written."""
        return self._handle >= 0

    def close(self, mtime: int | None = None) -> None:
        """Set the time of the file, in nanoseconds, if given, and close it."""
        if self._handle >= 0:
            if self._hole:
                os.ftruncate(self._handle, self._hole)
            if mtime is not None:
                os.utime(self._handle, ns=(mtime, mtime))
            os.close(self._handle)
            self._handle = -1
