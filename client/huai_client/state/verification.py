"""The record of when each part of a tree was last verified: an SQLite file next to the state.

It has one row for each part.
A time is when the verification of the part began, seconds since the epoch.  It is negative if a
commit has changed the part since then, and 0 if the part was never verified.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from huai_client.state.database import Database
from huai_schema.paths import RelPath

_TABLES = """
CREATE TABLE IF NOT EXISTS parts (
    key BLOB PRIMARY KEY, tree BLOB NOT NULL, identity BLOB NOT NULL,
    metadata INTEGER NOT NULL DEFAULT 0, content INTEGER NOT NULL DEFAULT 0,
    damaged INTEGER NOT NULL DEFAULT 0, run INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unfinished (
    content INTEGER PRIMARY KEY, key BLOB NOT NULL, began INTEGER NOT NULL,
    position BLOB NOT NULL, damaged INTEGER NOT NULL, changed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS current (
    one INTEGER PRIMARY KEY CHECK (one = 1), applied TEXT NOT NULL, filter TEXT NOT NULL,
    run INTEGER NOT NULL
);
INSERT OR IGNORE INTO current VALUES (1, '', '', 0);
"""


class KnownPart(NamedTuple):
    """The recorded ids of one part (`verify.parts.Part`)."""

    tree: bytes
    identity: bytes


class Unfinished(NamedTuple):
    """A part that was verified up to a position."""

    path: RelPath
    began: int
    position: bytes
    """A key of `paths.tree_order`, up to which all was verified."""
    damaged: int
    """The number of paths that differed up to there."""


class VerificationRecord(Database):
    """An open record, as a context manager.

    Methods that change it are called in a block of `writing`, except `begin_run`.
    """

    version, tables, probe = 1, _TABLES, "SELECT run FROM current"

    def __init__(self, path: Path) -> None:
        """Open the file; replace a missing or damaged one by an empty one."""
        super().__init__(path)
        self._run = 0

    def record_applied(self, commit: str, key: str) -> bool:
        """Record that the parts are those of this commit, with the filter `key`.

        Returns True if the filter has changed.
        """
        self._db.execute("UPDATE current SET applied = ?", (commit,))
        updated = self._db.execute("UPDATE current SET filter = ?1 WHERE filter != ?1", (key,))
        return updated.rowcount > 0

    def find_part(self, path: RelPath) -> KnownPart | None:
        """Return the recorded ids of the part at `path`, or None."""
        statement = "SELECT tree, identity FROM parts WHERE key = ?"
        rows = self._rows(statement, (_key(path),), bytes, bytes)
        return KnownPart(*rows[0]) if rows else None

    def add(self, path: RelPath, part: KnownPart) -> None:
        """Add a part that is not verified yet."""
        self._db.execute(
            "INSERT INTO parts (key, tree, identity) VALUES (?, ?, ?)", (_key(path), *part)
        )

    def change(self, path: RelPath, part: KnownPart) -> None:
        """Record that a commit has changed the entries of a part, or only other parts below it.

        In the first case the part has to be verified again.
        """
        key = _key(path)
        before = self.find_part(path)
        self._db.execute("UPDATE parts SET tree = ? WHERE key = ?", (part.tree, key))
        if before is not None and before.identity != part.identity:
            self._db.execute(
                "UPDATE parts SET identity = ?, metadata = -abs(metadata), content = -abs(content)"
                " WHERE key = ?",
                (part.identity, key),
            )
            self._db.execute("UPDATE unfinished SET changed = 1 WHERE key = ?", (key,))

    def children(self, path: RelPath) -> Iterator[RelPath]:
        """Yield the parts directly in the part at `path`; makes a query for each."""
        prefix = _key(path) + b"\0" if path else b""
        low, high = prefix or b"\0", _end(path)
        while True:
            rows = self._rows(
                "SELECT key FROM parts WHERE key >= ? AND key < ? ORDER BY key LIMIT 1",
                (low, high),
                bytes,
            )
            if not rows or rows[0][0] < low:  # rows out of order could loop for ever
                return
            child = prefix + rows[0][0][len(prefix) :].partition(b"\0")[0]
            yield _path(child)
            low = child + b"\1"

    def drop(self, path: RelPath) -> None:
        """Delete the part at `path` and all parts below it."""
        key = _key(path)
        bounds = (key, key + b"\0", _end(path))
        where = "key = ? OR (key >= ? AND key < ?)"
        self._db.execute(f"DELETE FROM parts WHERE {where}", bounds)  # noqa: S608 - no input
        self._db.execute(f"DELETE FROM unfinished WHERE {where}", bounds)  # noqa: S608 - no input

    def begin_run(self) -> None:
        """Begin a run, in which no part is verified yet."""
        with self.writing():
            self._db.execute("UPDATE current SET run = run + 1")
        self._run = self._rows("SELECT run FROM current", (), int)[0][0]

    def due(
        self, below: RelPath, *, content: bool, damaged_first: bool, most: int
    ) -> list[RelPath]:
        """Return at most `most` parts that this run has not verified, the oldest first.

        `below`: only the part at this path and those in it.  The time is that of `content` or of
        attributes; with `damaged_first` parts with differing paths come first.
        """
        time = "content" if content else "metadata"
        first = "damaged = 0," if damaged_first else ""
        low = _key(below)
        rows = self._rows(
            "SELECT key FROM parts WHERE run != ? AND (key = ? OR (key >= ? AND key < ?))"  # noqa: S608 - no input
            f" ORDER BY {first} abs({time}), key LIMIT ?",
            (self._run, low, low + b"\0" if low else b"\0", _end(below), most),
            bytes,
        )
        return [_path(row[0]) for row in rows]

    def left(self, below: RelPath) -> int:
        """Return the number of parts at and below a path that this run has not verified."""
        low = _key(below)
        rows = self._rows(
            "SELECT count(*) FROM parts WHERE run != ? AND (key = ? OR (key >= ? AND key < ?))",
            (self._run, low, low + b"\0" if low else b"\0", _end(below)),
            int,
        )
        return int(rows[0][0])

    def record_finished(self, part: Unfinished, identity: bytes, *, content: bool) -> None:
        """Record that a part was fully verified, and its damage; drop its recorded position.

        With `content` its files were read, too.  `identity` is that of the compared entries.  If a
        commit has changed the part meanwhile, the time becomes negative.
        """
        key = _key(part.path)
        changed = self._rows(
            "SELECT 1 FROM unfinished WHERE content = ? AND key = ? AND began = ? AND changed",
            (content, key, part.began),
            int,
        )
        times = "metadata = {0}, content = {0}" if content else "metadata = {0}"
        when = times.format("CASE WHEN identity = ?1 THEN ?2 ELSE -abs(?2) END")
        self._db.execute(
            f"UPDATE parts SET {when}, damaged = ?3, run = ?4 WHERE key = ?5",  # noqa: S608 - no input
            (identity, -part.began if changed else part.began, part.damaged, self._run, key),
        )
        self._db.execute("DELETE FROM unfinished WHERE content = ? AND key = ?", (content, key))

    def skip(self, path: RelPath) -> None:
        """Treat a part as done by this run, without a time."""
        self._db.execute("UPDATE parts SET run = ? WHERE key = ?", (self._run, _key(path)))

    def record_position(self, part: Unfinished, *, content: bool) -> None:
        """Record how far a part was verified, in place of the unfinished one of this `content`."""
        key = _key(part.path)
        self._db.execute(
            "INSERT INTO unfinished (content, key, began, position, damaged)"
            " VALUES (?, ?, ?, ?, ?) ON CONFLICT (content) DO UPDATE SET"
            " changed = changed AND key = excluded.key AND began = excluded.began,"
            " key = excluded.key, began = excluded.began, position = excluded.position,"
            " damaged = excluded.damaged",
            (content, key, part.began, part.position, part.damaged),
        )

    def unfinished(self, *, content: bool) -> Unfinished | None:
        """Return the part in which a run with this `content` stopped before its end, or None."""
        statement = "SELECT key, began, position, damaged FROM unfinished WHERE content = ?"
        for key, *rest in self._rows(statement, (content,), bytes, int, bytes, int):
            return Unfinished(_path(key), *rest)
        return None

    def record_damage(self, path: RelPath, paths: int) -> None:
        """Replace the number of differing paths of a part, if the part is recorded."""
        self._db.execute("UPDATE parts SET damaged = ? WHERE key = ?", (paths, _key(path)))


def _key(path: RelPath) -> bytes:
    """Return a key that sorts a directory right before its content; see `paths.path_order`."""
    return path.replace(b"/", b"\0")


def _path(key: bytes) -> RelPath:
    return RelPath(key.replace(b"\0", b"/"))


def _end(path: RelPath) -> bytes:
    """Return a key behind those of all paths below `path`; names have at most 255 bytes."""
    return _key(path) + b"\1" if path else b"\xff" * 256
