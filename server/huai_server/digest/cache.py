"""What is already known about file contents, on local disk.

A cache and nothing more: it may be deleted at any time, and a damaged one is thrown away.
An entry holds only while device, inode, size, mtime and ctime are all the same, so a file
edited in place with its old size and time is read again.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_SCHEMA = """
CREATE TABLE IF NOT EXISTS digest (
    device INTEGER, inode INTEGER, size INTEGER, mtime INTEGER, ctime INTEGER, digest BLOB,
    PRIMARY KEY (device, inode)
) WITHOUT ROWID
"""
_CHUNK = 500
_SIGNED = 1 << 63


class Identity(NamedTuple):
    """What tells one state of one file from every other."""

    device: int
    inode: int
    size: int
    mtime: int
    """Nanoseconds."""
    ctime: int
    """Nanoseconds."""


class DigestCache:
    """Digests by identity."""

    def __init__(self, path: Path) -> None:
        """Open the cache at `path`; made anew if it is missing or damaged."""
        try:
            self._database = _open(path)
        except sqlite3.DatabaseError:
            path.unlink(missing_ok=True)
            self._database = _open(path)

    def lookup(self, wanted: Iterable[Identity]) -> dict[Identity, bytes]:
        """Those of `wanted` whose digest is known."""
        by_place = {(_signed(item.device), _signed(item.inode)): item for item in wanted}
        inodes = [inode for _, inode in by_place]
        found: dict[Identity, bytes] = {}
        for first in range(0, len(inodes), _CHUNK):
            chunk = inodes[first : first + _CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT * FROM digest WHERE inode IN ({marks})"  # noqa: S608 (only marks)
            for device, inode, size, mtime, ctime, digest in self._database.execute(query, chunk):
                item = by_place.get((device, inode))
                if item is not None and item[2:] == (size, mtime, ctime):
                    found[item] = digest
        return found

    def remember(self, digests: dict[Identity, bytes]) -> None:
        """Keep digests; an older state of the same file is forgotten."""
        rows = [
            (_signed(item.device), _signed(item.inode), *item[2:], digest)
            for item, digest in digests.items()
        ]
        with self._database:
            self._database.executemany("REPLACE INTO digest VALUES (?,?,?,?,?,?)", rows)

    def __len__(self) -> int:
        """How many files are known."""
        (count,) = self._database.execute("SELECT count(*) FROM digest").fetchone()
        return int(count)

    def clear(self) -> None:
        """Forget everything."""
        with self._database:
            self._database.execute("DELETE FROM digest")

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    # A power cut may cost the cache, never the snapshot: no fsync for each batch.
    database.execute("PRAGMA synchronous=OFF")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute(_SCHEMA)
    database.execute("SELECT device, inode, size, mtime, ctime, digest FROM digest LIMIT 1")
    return database


def _signed(number: int) -> int:
    """SQLite's integers are signed, inode numbers are not."""
    return number - 2 * _SIGNED if number >= _SIGNED else number
