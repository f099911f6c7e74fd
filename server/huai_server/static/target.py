"""Where static files go: what each kind of place has to be able to do.

A name is relative to the address of the repository, such as `static/head`.  Rule: `put` is for
files that never change, `replace` for the head; what was put is there for good before a head that
names it is.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from huai_native._native import Blake3
from huai_program.packs import TEMPORARY
from huai_schema.codec.static_files import StaticFile

FILE_MODE = 0o644
"""The permissions of static files, whatever the umask is."""


class Draft:
    """A file that has no name yet."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        """Made by `drafted`."""
        self._file = file
        self.path = path
        self._size = 0
        self._hash = Blake3()

    def write(self, data: bytes) -> None:
        """What comes next."""
        self._file.write(data)
        self._size += len(data)
        self._hash.update(data)

    def finish(self) -> StaticFile:
        """All of it is on the disk; its size and its digest."""
        self._file.flush()
        os.fchmod(self._file.fileno(), FILE_MODE)
        os.fsync(self._file.fileno())
        return StaticFile(self._size, self._hash.digest())


@contextmanager
def drafted(folder: Path) -> Iterator[Draft]:
    """A file in `folder`, which is gone at the end unless it got a name."""
    handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=folder)
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield Draft(file, path)
    finally:
        path.unlink(missing_ok=True)


class Target(Protocol):
    """A place for the static files of one module."""

    drafts: Path
    """The folder where files are made before they are put there."""

    def begin(self) -> None:
        """Get ready; what a killed run left goes."""
        ...

    def read(self, name: str, limit: int) -> bytes | None:
        """The beginning of a file, at most so many bytes; None: there is none."""
        ...

    def put(self, name: str, path: Path) -> None:
        """Let a file that is complete, and will never change, have its name; it may be moved."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Replace the head, after all that was put is there for good."""
        ...

    def names(self, folder: str) -> dict[str, float]:
        """The names of all files below a folder, with their times, seconds since the epoch."""
        ...

    def remove(self, name: str) -> None:
        """Let a file go, if it is there."""
        ...
