"""The standard streams of a program whose work must not depend on the reader of its output.

Rules to keep: output that cannot be written (a full disk, a reader that went away, a closed stream)
is dropped, the work continues, and the exit code reports it.  Characters that the stream's encoding
lacks are escaped.
"""

import errno
import io
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Any

from huai_schema.errors import ExitCode

_STANDARD = (0, 1, 2)


class _Stream(io.RawIOBase):
    """A stream on a file descriptor that never fails to write, and keeps its first error."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.error: OSError | None = None

    def writable(self) -> bool:
        """Return True, for `BufferedWriter`."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor, by which callers find the width of a terminal."""
        return self._number

    def isatty(self) -> bool:
        """Return True for a terminal."""
        return os.isatty(self._number)

    def write(self, data: Any, /) -> int:
        """Write a part of `data`, or after an error drop all; return the number of these bytes."""
        size = memoryview(data).nbytes
        while self.error is None:
            try:
                return os.write(self._number, data)
            except BlockingIOError:  # a process that shares the terminal made it non-blocking
                select.select([], [self._number], [])
            except OSError as error:
                self.error = error
        return size


class _Text(io.TextIOWrapper):
    """A text stream in the encoding of another one."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding; for ASCII a name without a codec, because click would write UTF-8."""
        name = super().encoding
        return "ascii-escaped" if name.lower().replace("_", "-") in _ASCII else name


_ASCII = frozenset(("ascii", "us-ascii", "646", "iso646-us", "ansi-x3.4-1968"))


class Output:
    """Standard output and error of this process, which keep a failed write for the exit code."""

    def __init__(self) -> None:
        """Replace `sys.stdout` and `sys.stderr`."""
        _open_closed_streams()
        self._streams = _Stream(1), _Stream(2)
        out, err = self._streams
        sys.stdout = _text(out, sys.stdout, by_line=out.isatty())
        sys.stderr = _text(err, sys.stderr, by_line=True)

    def code(self, code: int) -> int:
        """Flush both streams; return `code`, or if it is 0 the code for lost output, if any was."""
        sys.stdout.flush()
        sys.stderr.flush()
        lost = [stream.error for stream in self._streams if stream.error is not None]
        if code != ExitCode.OK or not lost:
            return code
        unread = any(error.errno == errno.EPIPE for error in lost)
        return int(ExitCode.UNREAD if unread else ExitCode.UNWRITTEN)


def end_with_reader() -> None:
    """End the process when its output has no reader any more (`| head`).

    For commands that change nothing; does nothing without an `Output`.
    """
    if isinstance(sys.stdout, _Text):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _text(stream: _Stream, before: object, *, by_line: bool) -> io.TextIOWrapper:
    """Return a text stream on `stream` with the encoding of `before`; escapes what that lacks."""
    encoding = getattr(before, "encoding", None) or "utf-8"
    return _Text(io.BufferedWriter(stream), encoding, "backslashreplace", line_buffering=by_line)


def _open_closed_streams() -> None:
    """Open standard streams that the parent has closed, for reading only.

    Otherwise the first file that is opened would get the number, and the output with it.
    """
    for number in _STANDARD:
        with suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDONLY)  # gets the lowest free number, this one
