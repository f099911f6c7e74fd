"""What is already known about file contents, on local disk.

A cache and nothing more: it may be deleted at any time, and a damaged one is thrown away.
An entry holds only while device, inode, size, mtime and ctime are all the same, so a file
edited in place with its old size and time is read again.
"""

import os
import sqlite3
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from huai_schema.errors import ExitCode, HuaiError
from huai_schema.limits import DIGEST_BYTES

_SCHEMA = """
CREATE TABLE IF NOT EXISTS digest (
    device INTEGER, inode INTEGER, size INTEGER, mtime INTEGER, ctime INTEGER, digest BLOB,
    PRIMARY KEY (device, inode)
) WITHOUT ROWID
"""
_COLUMNS = "device, inode, size, mtime, ctime, digest"
_CHUNK = 500
_SIGNED = 1 << 63
_SYSTEM = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
_SIDE_FILES = ("", "-wal", "-shm", "-journal")


class CacheError(HuaiError):
    """The digest cache cannot be used, and making it anew does not help either."""

    exit_code = ExitCode.FILE_IO


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
        self._path = path
        try:
            self._database = _open(path)
        except sqlite3.Error as error:
            self._make_anew(error)

    def lookup(self, wanted: Iterable[Identity]) -> dict[Identity, bytes]:
        """Those of `wanted` whose digest is known."""
        ordered = sorted(wanted)
        try:
            return self._lookup(ordered)
        except sqlite3.Error as error:
            self._make_anew(error)
            return {}

    def remember(self, digests: dict[Identity, bytes]) -> None:
        """Keep digests; an older state of the same file is forgotten."""
        rows = [
            (_signed(item.device), _signed(item.inode), *item[2:], digest)
            for item, digest in digests.items()
        ]
        try:
            self._remember(rows)
        except sqlite3.Error as error:
            self._make_anew(error)

    def __len__(self) -> int:
        """How many files are known."""
        (count,) = self._database.execute("SELECT count(*) FROM digest").fetchone()
        return int(count)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _lookup(self, ordered: list[Identity]) -> dict[Identity, bytes]:
        found: dict[Identity, bytes] = {}
        for device, items in groupby(ordered, key=lambda item: _signed(item.device)):
            by_inode = {_signed(item.inode): item for item in items}
            inodes = list(by_inode)
            for first in range(0, len(inodes), _CHUNK):
                chunk = inodes[first : first + _CHUNK]
                marks = ",".join("?" * len(chunk))
                # The device as well: without it nothing of the primary key could be used.
                query = f"SELECT {_COLUMNS} FROM digest WHERE device=? AND inode IN ({marks})"  # noqa: S608 (only marks)
                for _, inode, *state, digest in self._database.execute(query, (device, *chunk)):
                    item = by_inode[inode]
                    if item[2:] == tuple(state) and _is_digest(digest):
                        found[item] = digest
        return found

    def _remember(self, rows: Iterable[tuple[int | bytes, ...]]) -> None:
        with self._database:
            self._database.executemany("REPLACE INTO digest VALUES (?,?,?,?,?,?)", rows)

    def _make_anew(self, reason: sqlite3.Error) -> None:
        """Start over, unless the file is good and it is the system that refuses."""
        if getattr(reason, "sqlite_errorcode", 0) & 0xFF in _SYSTEM:
            raise _unusable(self._path, reason) from reason
        if hasattr(self, "_database"):
            self._database.close()
        for suffix in _SIDE_FILES:  # a log left behind would be played into the new file
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        try:
            self._database = _open(self._path)
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error


def _open(path: Path) -> sqlite3.Connection:
    # Nobody else's business: it knows of files that not everybody may read.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path)
    try:
        # A power cut may cost the cache, never the snapshot: no fsync for each batch.
        database.execute("PRAGMA synchronous=OFF")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(_SCHEMA)
        database.execute(f"SELECT {_COLUMNS} FROM digest LIMIT 1")  # noqa: S608 (no value)
    except BaseException:
        database.close()
        raise
    return database


def _unusable(path: Path, error: sqlite3.Error) -> CacheError:
    return CacheError(
        f"{path}: {error}",
        hint=f"make room on the file system of {path.parent}, and check that it can be written",
    )


def _is_digest(value: object) -> bool:
    return isinstance(value, bytes) and len(value) == DIGEST_BYTES


def _signed(number: int) -> int:
    """SQLite's integers are signed, inode numbers are not."""
    return number - 2 * _SIGNED if number >= _SIGNED else number
