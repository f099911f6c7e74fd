"""The digests of files that were read before, in a database on the local disk.

A cache: it may be deleted at any time, and a damaged one is made anew.  A digest is valid as long
as device, inode, size, mtime and ctime of the file are the same, so a file that was edited in place
is read again, even if its size and mtime were put back.

The ctime also changes with the mode, the owner, the number of links and the name.  If one of these
has changed, it explains the new ctime, and the digest stays valid, provided that the file has the
same time of birth: inode numbers are used again.  One case is missed: since the last commit the
content was changed in place, size and mtime were put back, and mode, owner, links or name were
changed as well.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from huai_schema.errors import ExitCode, HuaiError
from huai_schema.limits import DIGEST_BYTES

_SCHEMA = """
CREATE TABLE IF NOT EXISTS digest (
    device INTEGER, inode INTEGER, size INTEGER, mtime INTEGER, ctime INTEGER, digest BLOB,
    mode INTEGER, user INTEGER, owning_group INTEGER, links INTEGER, folder INTEGER, name BLOB,
    birth INTEGER,
    PRIMARY KEY (device, inode)
) WITHOUT ROWID
"""
_ADDED_COLUMNS = ("mode", "user", "owning_group", "links", "folder", "name", "birth")
_OLD_COLUMNS = ("device", "inode", "size", "mtime", "ctime", "digest")
"""Of version 0.9 and before; a commit fills in the other columns of the files that it sees."""
_COLUMNS = ", ".join((*_OLD_COLUMNS, *_ADDED_COLUMNS))
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
    """The digest cache cannot be used, and a new one cannot be made."""

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


class CtimeAttributes(NamedTuple):
    """The attributes of a file that change its ctime although the content stays."""

    mode: int
    user: int
    group: int
    links: int
    folder: int
    """The inode of the directory.  Not its path: renaming it leaves the ctime of the file alone."""
    name: bytes
    """One of its names, the first that was met."""


class CachedDigest(NamedTuple):
    """The digest of a file whose size and mtime are what they were."""

    digest: bytes
    same: bool
    """Whether the ctime is what it was, too.  If not, an attribute explains the new one, and the
    digest is valid if the time of birth is `birth`."""
    birth: int | None
    complete: bool
    """Whether the row has all columns."""


class Entry(NamedTuple):
    """What to remember."""

    identity: Identity
    attributes: CtimeAttributes
    digest: bytes
    birth: int | None


class DigestCache:
    """Digests by identity."""

    def __init__(self, path: Path) -> None:
        """Open the cache at `path`; made anew if it is missing or damaged."""
        self._path = path
        try:
            self._database = _open(path)
        except sqlite3.Error as error:
            self._make_anew(error)

    def lookup(self, wanted: Mapping[Identity, CtimeAttributes]) -> dict[Identity, CachedDigest]:
        """The digests that are known of `wanted`; see `CachedDigest.same`."""
        try:
            return dict(self._lookup(wanted))
        except sqlite3.Error as error:
            self._make_anew(error)
            return {}

    def remember(self, entries: Iterable[Entry]) -> None:
        """Keep digests; an older state of the same file is forgotten."""
        rows = [
            (
                *(_signed(item.device), _signed(item.inode), *item[2:], digest),
                *_stored(attributes),
                birth,
            )
            for item, attributes, digest, birth in entries
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

    def _lookup(
        self, wanted: Mapping[Identity, CtimeAttributes]
    ) -> Iterator[tuple[Identity, CachedDigest]]:
        ordered = sorted(wanted)
        for device, items in groupby(ordered, key=lambda item: _signed(item.device)):
            by_inode = {_signed(item.inode): item for item in items}
            inodes = list(by_inode)
            for first in range(0, len(inodes), _CHUNK):
                chunk = inodes[first : first + _CHUNK]
                marks = ",".join("?" * len(chunk))
                # The primary key begins with the device: without it SQLite would read all rows.
                query = f"SELECT {_COLUMNS} FROM digest WHERE device=? AND inode IN ({marks})"  # noqa: S608 (only marks)
                for row in self._database.execute(query, (device, *chunk)):
                    item = by_inode[row[1]]
                    known = _known(item, wanted[item], row)
                    if known is not None:
                        yield item, known

    def _remember(self, rows: Iterable[tuple[int | bytes | None, ...]]) -> None:
        marks = ",".join("?" * (len(_OLD_COLUMNS) + len(_ADDED_COLUMNS)))
        with self._database:
            self._database.executemany(f"REPLACE INTO digest VALUES ({marks})", rows)  # noqa: S608 (only marks)

    def _make_anew(self, reason: sqlite3.Error) -> None:
        """Make an empty cache, unless the error is the system's and not the file's."""
        if getattr(reason, "sqlite_errorcode", 0) & 0xFF in _SYSTEM:
            raise _unusable(self._path, reason) from reason
        if hasattr(self, "_database"):
            self._database.close()
        for suffix in _SIDE_FILES:  # SQLite would apply a log that is left to the new file
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        try:
            self._database = _open(self._path)
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error


def _open(path: Path) -> sqlite3.Connection:
    # Only for its owner: it holds digests of files that others may not read.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path)
    try:
        # A power cut may cost the cache, never the snapshot: no fsync for each batch.
        database.execute("PRAGMA synchronous=OFF")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(_SCHEMA)
        _add_columns(database)
        database.execute(f"SELECT {_COLUMNS} FROM digest LIMIT 1")  # noqa: S608 (no value)
    except BaseException:
        database.close()
        raise
    return database


def _add_columns(database: sqlite3.Connection) -> None:
    """Keep a cache of an older version: reading all content again may take days."""
    columns = tuple(name for _, name, *_ in database.execute("PRAGMA table_info(digest)"))
    if columns == _OLD_COLUMNS:
        with database:
            database.execute("BEGIN")
            for name in _ADDED_COLUMNS:
                database.execute(f"ALTER TABLE digest ADD COLUMN {name}")


def _known(item: Identity, now: CtimeAttributes, row: tuple[object, ...]) -> CachedDigest | None:
    """The digest in a row, if it is valid for a file with `item` and `now`."""
    size, mtime, ctime, digest = row[2 : len(_OLD_COLUMNS)]
    *before, birth = row[len(_OLD_COLUMNS) :]
    if (size, mtime) != (item.size, item.mtime):
        return None
    if not isinstance(digest, bytes) or len(digest) != DIGEST_BYTES:
        return None
    complete = None not in before
    if ctime == item.ctime:
        return CachedDigest(digest, same=True, birth=None, complete=complete)
    if not complete or not isinstance(birth, int) or tuple(before) == _stored(now):
        return None
    return CachedDigest(digest, same=False, birth=birth, complete=True)


def _stored(attributes: CtimeAttributes) -> tuple[int | bytes, ...]:
    return *attributes[:4], _signed(attributes.folder), attributes.name


def _unusable(path: Path, error: sqlite3.Error) -> CacheError:
    # SQLite gives one code for a full disk and a broken one when it makes its shared memory.
    broken = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR
    reason = f"{error} (the disk is full, or broken)" if broken else str(error)
    return CacheError(
        f"{path}: {reason}",
        hint=f"make room on the file system of {path.parent}, and check that it can be written",
    )


def _signed(number: int) -> int:
    """SQLite's integers are signed, inode numbers are not."""
    return number - 2 * _SIGNED if number >= _SIGNED else number
