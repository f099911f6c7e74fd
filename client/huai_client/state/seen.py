"""The digests that files had when they arrived from an upstream that states none.

The upstream does not vouch for them: they show only that a file has changed here since.
Rule: a digest is removed, or replaced by that of staged content, before the content at its path
changes, so that a run that is killed leaves too few digests, and no wrong one.
"""

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from huai_client.state.database import Database, remove_database
from huai_client.state.state import StateError
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
        """Open the file; replace a missing or damaged one by an empty one.

        Raises `StateError` if that fails.
        """
        super().__init__(path)
        self._lock = threading.Lock()
        self._lost = False

    def replace(self, paths: Iterable[RelPath], files: Iterable[SeenFile]) -> None:
        """Remove the files at `paths`, and add `files`, in one transaction."""
        self._change(
            ("DELETE FROM seen WHERE path = ?", ((path,) for path in paths)),
            ("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)", files),
        )

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

    def equal(self, digest: bytes, file: File) -> list[RelPath]:
        """Return some paths with this digest, and the size and time of `file`, sorted."""
        rows = self._rows(
            "SELECT path FROM seen WHERE digest = ? AND size = ? AND mtime = ?"
            " ORDER BY path LIMIT 10",
            (digest, file.size, file.mtime),
            bytes,
        )
        return [RelPath(row[0]) for row in rows]

    def make_index(self) -> None:
        """Make `equal` fast; raises `StateError` if that fails."""
        with self.writing():
            self._db.execute("CREATE INDEX IF NOT EXISTS by_digest ON seen (digest)")

    def copy(self, files: Iterable[tuple[RelPath, int, RelPath]]) -> None:
        """Copy the digest of the first path, if it was seen at that time, to the second path."""
        self._change(
            (
                (
                    "INSERT OR REPLACE INTO seen SELECT ?3, size, mtime, digest FROM seen"
                    " WHERE path = ?1 AND mtime = ?2"
                ),
                files,
            )
        )

    def move(self, old: RelPath, new: RelPath) -> None:
        """Move the files below the directory `old` to `new`, and remove those that were there."""
        self._change(
            ("DELETE FROM seen WHERE path > ? AND path < ?", [(new + b"/", new + b"0")]),
            (
                (
                    "UPDATE seen SET path = CAST(? || substr(path, ?) AS BLOB)"
                    " WHERE path > ? AND path < ?"
                ),
                [(new, len(old) + 1, old + b"/", old + b"0")],
            ),
        )

    def remove(self, paths: Iterable[RelPath]) -> None:
        """Remove the files at `paths`."""
        self.replace(paths, ())

    def _change(self, *statements: tuple[str, Iterable[Sequence[object]]]) -> None:
        """Execute each statement with all its values; several threads may call this.

        If that fails, deletes the file, because digests that could not be removed may be of other
        content by now; later changes do nothing.
        """
        with self._lock:
            if self._lost:
                return
            try:
                with self.writing():
                    for statement, values in statements:
                        self._db.executemany(statement, values)
            except StateError:
                self._lost = True
                delete(self._path)


def delete(path: Path) -> None:
    """Delete the file with seen digests, if there is one; raises `StateError` if that fails."""
    try:
        with suppress(IsADirectoryError):  # which has no digests
            remove_database(path)
    except OSError as error:
        raise StateError(f"{path}: {error}", hint="delete that file; then run again") from error
