"""The digests that files had when they arrived from an upstream that states none.

The upstream does not vouch for them: they show only that a file has changed here since.  A digest
belongs to a path, a size and a time, so a row of a file that was replaced is not used.
"""

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from huai_client.state.database import Database
from huai_schema.entries import File
from huai_schema.paths import RelPath

_TABLES = """
CREATE TABLE IF NOT EXISTS seen (
    path BLOB PRIMARY KEY, size INTEGER NOT NULL, mtime INTEGER NOT NULL, digest BLOB NOT NULL
) WITHOUT ROWID;
"""


class SeenFile(NamedTuple):
    """A file, and the digest that it had when it arrived."""

    path: RelPath
    size: int
    mtime: int
    """Nanoseconds since the epoch."""
    digest: bytes


class SeenDigests(Database):
    """The seen digests of one module, as a context manager."""

    version, tables = 1, _TABLES
    probe = "SELECT 1 FROM sqlite_master WHERE name = 'seen'"

    def __init__(self, path: Path) -> None:
        """Open the file; replace a missing or damaged one by an empty one."""
        super().__init__(path)
        self._lock = threading.Lock()
        with self._failing():  # a power failure may lose it
            self._db.execute("PRAGMA synchronous = OFF")

    def add(self, files: Iterable[SeenFile]) -> None:
        """Add files, in place of older ones at their paths; several threads may call this."""
        with self._lock, self.writing():
            self._db.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)", files)

    def find(self, file: File) -> bytes | None:
        """Return the digest that was seen of `file`; None if it has another size or time."""
        rows = self._rows(
            "SELECT digest FROM seen WHERE path = ? AND size = ? AND mtime = ?",
            (file.path, file.size, file.mtime),
            bytes,
        )
        return rows[0][0] if rows else None

    @property
    def is_empty(self) -> bool:
        """True without any file."""
        return not self._rows("SELECT size FROM seen LIMIT 1", (), int)

    def copy(self, pairs: Iterable[tuple[RelPath, RelPath]]) -> None:
        """Copy the digest of the first file of each pair to the second, unless it has one."""
        with self.writing():
            self._db.executemany(
                "INSERT OR IGNORE INTO seen SELECT ?2, size, mtime, digest FROM seen"
                " WHERE path = ?1",
                pairs,
            )

    def move(self, old: RelPath, new: RelPath) -> None:
        """Move the files below the directory `old` to `new`, except onto others."""
        with self.writing():
            self._db.execute(
                "UPDATE OR IGNORE seen SET path = CAST(? || substr(path, ?) AS BLOB)"
                " WHERE path > ? AND path < ?",
                (new, len(old) + 1, old + b"/", old + b"0"),
            )

    def remove(self, paths: Iterable[RelPath]) -> None:
        """Remove the files at `paths`."""
        with self.writing():
            self._db.executemany("DELETE FROM seen WHERE path = ?", ((path,) for path in paths))
