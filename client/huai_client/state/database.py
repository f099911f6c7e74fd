"""An SQLite file next to a module's state, for what may be lost.

No change to a tree depends on it, so a file that is damaged or of another version is replaced by
an empty one.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from huai_client.state.state import StateError

_BUSY_SECONDS = 60
DAMAGES = (sqlite3.Error, UnicodeError)
"""The errors for a damaged file; `UnicodeError` comes from messages that quote it."""


class Database:
    """An open database, as a context manager.

    Each method raises `StateError` if the file is damaged, or cannot be read or written.
    """

    version: ClassVar[int]
    tables: ClassVar[str]
    """SQL statements that create the tables, and may be repeated."""
    probe: ClassVar[str]
    """A query that returns a row in each complete file."""

    def __init__(self, path: Path) -> None:
        """Open the file; replace a missing or damaged one by an empty one.

        Raises `StateError` if that fails.
        """
        self._path = path
        with self._failing():
            try:
                self._db = self._opened()
            except (sqlite3.DatabaseError, UnicodeError, _AnotherVersionError) as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                remove_database(path)
                self._db = self._opened()

    def _opened(self) -> sqlite3.Connection:
        """Open the database, and create its tables in a new one.

        Raises `_AnotherVersionError` if another version of the program wrote it.
        """
        # Statements are transactions only between the explicit BEGIN and COMMIT; several threads
        # of a caller take turns.
        db = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if not version:
                # Another process may have made them since: each statement may be repeated.
                db.executescript(
                    f"BEGIN EXCLUSIVE; {self.tables} PRAGMA user_version = {self.version}; COMMIT;"
                )
            elif version != self.version:
                raise _AnotherVersionError
            if db.execute(self.probe).fetchone() is None:
                raise _AnotherVersionError
        except BaseException:
            db.close()
            raise
        return db

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make all changes of the block, or none, in a durable transaction."""
        with self._failing():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:  # SQLite rolls back itself if the file is damaged
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn an error of the database into a `StateError`."""
        try:
            yield
        except (*DAMAGES, OverflowError) as error:
            raise StateError(
                f"{self._path}: {error}", hint="check the disk, or delete that file; then run again"
            ) from error

    def _rows(
        self, statement: str, values: tuple[object, ...], *kinds: type
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose columns have the types `kinds`.

        Raises `StateError` if it fails, or for another type.
        """
        with self._failing():
            rows = self._db.execute(statement, values).fetchall()
            for row in rows:
                if not all(map(isinstance, row, kinds)):
                    raise sqlite3.DataError("a value of another type")
        return rows


def remove_database(path: Path) -> None:
    """Remove the file of a database, and its journal, if they exist; raises `OSError`."""
    # The journal first: it must not be applied to a new file.
    path.with_name(path.name + "-journal").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


class _AnotherVersionError(Exception):
    """The file was not written by this version of the program."""
