"""The requested bytes of a file, their progress, and the files to which they are written."""

import os
from collections import OrderedDict
from contextlib import AbstractContextManager
from urllib.parse import quote

from huai_client.transfer.http.verdict import RequestedRange, Verdict
from huai_client.tree import handles
from huai_schema.paths import RelPath, basename, parent


class Sink:
    """The destination of bytes, discarded here; an exception of it ends all requests."""

    def begin(self, position: int) -> None:
        """Start after the first `position` bytes of the file; later ones are dropped."""

    def write(self, position: int, data: bytes) -> None:
        """Write `data` at its position in the file."""


class Job:
    """A range of one file: one request, and another for the rest after a broken connection."""

    headers: tuple[str, ...] = ()
    """Headers of the request."""

    def __init__(
        self, address: str, requested: RequestedRange, sink: Sink, position: int = 0
    ) -> None:
        """The bytes before `position` are here already."""
        self.address = address
        self.sink = sink
        self.position = max(position, requested.first)
        self.continues = False
        """True if the request continues a partial file."""
        self._requested = requested
        self._furthest = self.position
        self._breaks = 0
        self._end = requested.end

    @property
    def body(self) -> bytes | None:
        """The body of a POST; None for a GET."""
        return None

    @property
    def requested(self) -> RequestedRange:
        """The bytes that are still missing."""
        return self._requested._replace(first=self.position)

    @property
    def is_whole(self) -> bool:
        """True if all requested bytes have arrived."""
        return self.position == self._end

    def begin(self, verdict: Verdict) -> None:
        """Continue where the body of a response begins, and start the sink there."""
        self.position = verdict.begins
        if self._requested.changes:
            self._end = self.position
        self.sink.begin(self.position)

    def write(self, data: bytes) -> None:
        """Write the next bytes of the body."""
        self.sink.write(self.position, data)
        self.position += len(data)
        if self._requested.changes:  # it ends where the body ends
            self._end = self.position

    def start_over(self) -> None:
        """Discard the received bytes."""
        self.position = self._requested.first

    def record_break(self) -> int:
        """Record a broken connection; return the number in a row without new bytes.

        Without a digest that proves the file, its bytes are requested again from the first.
        """
        self._breaks = 0 if self.position > self._furthest else self._breaks + 1
        self._furthest = max(self._furthest, self.position)
        if not self._requested.proved:
            self.start_over()  # nothing would prove that both parts belong to one file
        return self._breaks


_SAFE = "!$&'()*+,;=:@/"
"""Besides letters, digits and `-._~`: characters that stay unescaped (RFC 3986, `pchar`)."""


def address_of(base: str, path: RelPath) -> str:
    """Return the URL of `path` below `base`, which ends with a slash."""
    return base + quote(path, safe=_SAFE)


_WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o600
_FOLDERS_MOST = 64
"""Directories that stay open: the files of one follow each other."""


class Folders(AbstractContextManager["Folders"]):
    """The directories below the folder of a run, as a context manager."""

    def __init__(self, top: int) -> None:
        """`top` is a handle of the folder, which the caller closes."""
        self._top = top
        self._open: OrderedDict[bytes, int] = OrderedDict()

    def __exit__(self, *_: object) -> None:
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()

    def of(self, path: RelPath) -> int:
        """Return a handle of the directory that holds `path`, made if it is missing.

        It is closed with the others, or once many others were used.
        """
        folder_path = parent(path)
        handle = self._open.get(folder_path)
        if handle is None:
            with handles.opened(self._top, folder_path, make=True) as opened:
                handle = self._open[folder_path] = os.dup(opened)
            if len(self._open) > _FOLDERS_MOST:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(folder_path)
        return handle

    def drop(self, path: RelPath) -> None:
        """Remove the file at `path`."""
        os.unlink(basename(path), dir_fd=self.of(path))

    def stamp(self, path: RelPath, mtime: int) -> None:
        """Set the time of the file at `path`, in nanoseconds."""
        times = (mtime, mtime)
        os.utime(basename(path), ns=times, dir_fd=self.of(path), follow_symlinks=False)


class FileSink(Sink):
    """A file to write.  Close it when done."""

    def __init__(self, folders: Folders, path: RelPath) -> None:
        """Open nothing yet; `path` is below the folder of the run."""
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
