"""The places of static files: the interface of each kind.

A name is relative to the address of the repository, such as `static/head`.  Rule: `add` is for
files that never change, `replace` for the head; added files are durable before a head names them.
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
    """A file without a name yet."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        """Only `open_draft` makes drafts."""
        self._file = file
        self.path = path
        self._size = 0
        self._hash = Blake3()

    def write(self, data: bytes) -> None:
        """Append data."""
        self._file.write(data)
        self._size += len(data)
        self._hash.update(data)

    def finish(self) -> StaticFile:
        """Make the file durable; return its size and its digest."""
        self._file.flush()
        os.fchmod(self._file.fileno(), FILE_MODE)
        os.fsync(self._file.fileno())
        return StaticFile(self._size, self._hash.digest())


@contextmanager
def open_draft(folder: Path) -> Iterator[Draft]:
    """Yield a new file in `folder`, which is removed at the end unless it was renamed."""
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
    """The folder where files are made before they are added."""

    def begin(self) -> None:
        """Create what is missing of the place, and delete the remains of a killed run."""
        ...

    def read(self, name: str, limit: int) -> bytes | None:
        """Return the first `limit` bytes of a file; None if it is missing."""
        ...

    def add(self, name: str, path: Path) -> None:
        """Add the complete file at `path`, which never changes; it may be moved."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Replace a file that changes, such as the head, once all added files are durable."""
        ...

    def names(self, folder: str) -> dict[str, float]:
        """Return the files below a folder, with their times (seconds since the epoch)."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        ...
