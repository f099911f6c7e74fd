"""Begins to write what arrived to disk while more arrives.

Promises nothing, and tells nobody of an error: before anything is published, the executor syncs the
file system once more, finds little left, and learns of every error itself.
"""

import threading
from contextlib import suppress

from huai_native import _native

_WORTH = 16 << 20
_BLOCK = 4096
"""Bytes that a file takes beside its content: its inode, its name, the end of its last block."""


class WriteBack:
    """A thread of its own, from the first time that enough is there to `close`."""

    def __init__(self, folder: int) -> None:
        """`folder` is an open directory of the file system, until `close`."""
        self._folder = folder
        self._asked = threading.Event()
        self._over = False
        self._left = 0
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def arrived(self, files: int, size: int) -> None:
        """So many files are there, with so many bytes: write them, once there are enough.

        Does not wait.  What is being written already comes first.
        """
        with self._guard:
            self._left += files * _BLOCK + size
            if self._over or self._left < _WORTH:
                return
            self._left = 0
            self._asked.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="huai-write-back")
                self._thread.start()

    def close(self) -> None:
        """End it, when what is being written is written."""
        with self._guard:
            self._over = True
            self._asked.set()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            if self._over:
                return
            with suppress(OSError):
                _native.write_back(self._folder)
