"""Begins to write arrived files to disk while more arrive.

Guarantees nothing, and reports no error: before anything is published, the executor syncs the file
system once more, finds little left, and reports every error itself.
"""

import threading
from contextlib import suppress

from huai_native import _native

_WORTH = 16 << 20
_BLOCK = 4096
"""Bytes of a file besides its content: its inode, its name, the end of its last block."""


class WriteBack:
    """A thread that runs from the first time that enough files arrived until `close`."""

    def __init__(self, folder: int) -> None:
        """`folder` is an open directory of the file system, until `close`."""
        self._folder = folder
        self._wake = threading.Event()
        self._closed = False
        self._left = 0
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def arrived(self, files: int, size: int) -> None:
        """Count files and their bytes, and begin to write them once there are enough.

        Does not wait.  A write in progress is finished first.
        """
        with self._guard:
            self._left += files * _BLOCK + size
            if self._closed or self._left < _WORTH:
                return
            self._left = 0
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="huai-write-back")
                self._thread.start()

    def close(self) -> None:
        """End the thread, after the write in progress."""
        with self._guard:
            self._closed = True
            self._wake.set()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._closed:
                return
            with suppress(OSError):
                _native.write_back(self._folder)
