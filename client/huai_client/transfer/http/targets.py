"""The files that answers are written to, below the folder of a run in the staging area.

Reached by directory handles, never through a symlink; made when the first byte comes.  A file gets
its time as soon as it is whole, so that what a killed run leaves tells what is whole.
"""

import os
from collections import OrderedDict
from typing import Self

from huai_client.tree import handles
from huai_schema.paths import RelPath, basename, parent

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o600
_FOLDERS_MOST = 64
"""Directories that stay open: files of one follow each other."""


class Folders:
    """The directories below the folder of a run; to be closed, as a context manager."""

    def __init__(self, top: int) -> None:
        """`top` is a handle of the folder, and stays the caller's."""
        self._top = top
        self._open: OrderedDict[bytes, int] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()

    def of(self, path: RelPath) -> int:
        """The directory that holds `path`, made if it is missing."""
        place = parent(path)
        handle = self._open.get(place)
        if handle is None:
            with handles.opened(self._top, place, make=True) as found:
                handle = self._open[place] = os.dup(found)
            if len(self._open) > _FOLDERS_MOST:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(place)
        return handle

    def drop(self, path: RelPath) -> None:
        """Remove the file at `path`."""
        os.unlink(basename(path), dir_fd=self.of(path))

    def stamp(self, path: RelPath, mtime: int) -> None:
        """Give the file at `path` its time, in nanoseconds."""
        times = (mtime, mtime)
        os.utime(basename(path), ns=times, dir_fd=self.of(path), follow_symlinks=False)


class Target:
    """One file; a `Sink`."""

    def __init__(self, folders: Folders, path: RelPath) -> None:
        self._folders = folders
        self._path = path
        self._handle = -1
        self._hole = 0
        """Where the file ends, if that is in a hole: it has to be made so long."""

    def begin(self, position: int) -> None:
        """Open the file, and cut it to `position` bytes."""
        if self._handle < 0:
            folder = self._folders.of(self._path)
            self._handle = os.open(basename(self._path), _WRITE, _MODE, dir_fd=folder)
        os.ftruncate(self._handle, position)
        self._hole = 0

    def write(self, position: int, data: bytes) -> None:
        """Put `data` where it belongs; nothing but zeros is left out, for a hole."""
        if not data[0] and data.count(0) == len(data):
            self._hole = position + len(data)
            return
        self._hole = 0
        while data:
            count = os.pwrite(self._handle, data, position)
            position, data = position + count, data[count:]

    @property
    def is_open(self) -> bool:
        """Whether anything was written, or may have been."""
        return self._handle >= 0

    def close(self, mtime: int | None = None) -> None:
        """Give it its time, in nanoseconds, if it is known; nothing more is written."""
        if self._handle >= 0:
            if self._hole:
                os.ftruncate(self._handle, self._hole)
            if mtime is not None:
                os.utime(self._handle, ns=(mtime, mtime))
            os.close(self._handle)
            self._handle = -1
