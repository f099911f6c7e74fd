"""A summary of when the parts of a tree were verified; a `verify` may be writing meanwhile."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from huai_client.state.database import DAMAGES
from huai_schema.paths import RelPath, ancestors, path_order

_BUSY_SECONDS = 5


class VerifyTimes(NamedTuple):
    """The times at which a number of parts were verified, in one way."""

    never: int
    """The number of parts that were never verified."""
    changed: int
    """The number of parts that a commit has changed since."""
    oldest: int
    """The earliest time of the other parts, seconds since the epoch; 0 without such parts."""
    newest: int


class VerifySummary(NamedTuple):
    """A summary of one directory of the top level, or of the whole tree."""

    path: RelPath
    """The directory; empty for the part of the top directory itself."""
    parts: int
    metadata: VerifyTimes
    """The times of comparisons by attributes."""
    content: VerifyTimes
    """The times of comparisons by digest."""
    damaged: int
    """The number of paths that differed when they were last compared."""

    def values(self) -> dict[str, object]:
        """Return the values for JSON; times in seconds since the epoch, or None."""
        return {
            "parts": self.parts,
            "metadata": _values(self.metadata),
            "content": _values(self.content),
            "damaged": self.damaged,
        }


class Account(NamedTuple):
    """The summaries of one module's record."""

    applied: str
    """The commit that the parts belong to."""
    total: VerifySummary
    tops: list[VerifySummary]
    """The directories of the top level, sorted by path."""


class PartTimes(NamedTuple):
    """The times at which one part was last verified, as in `state.verification`."""

    part: RelPath
    metadata: int
    content: int


class _Row(NamedTuple):
    key: bytes
    metadata: int
    content: int
    damaged: int


def read_account(path: Path) -> Account | None:
    """Return the summaries of the record at `path`; None if it is missing or damaged."""
    try:
        with closing(_opened(path)) as db:
            current = db.execute("SELECT applied FROM current").fetchone()
            parts = db.execute("SELECT key, metadata, content, damaged FROM parts ORDER BY key")
            rows = [_Row(*row) for row in parts]
    except DAMAGES:
        return None
    if not _sound(current, str) or not all(_sound(row, bytes, int, int, int) for row in rows):
        return None
    tops = groupby(rows, key=lambda row: row.key.partition(b"\0")[0])
    return Account(current[0], _summary(b"", rows), [_summary(*top) for top in tops])


def times_of(path: Path, inside: RelPath) -> PartTimes | None:
    """Return the recorded times of the part that holds `inside`; None without or if damaged."""
    with suppress(*DAMAGES), closing(_opened(path)) as db:
        for part in (inside, *ancestors(inside)):
            row = db.execute(
                "SELECT metadata, content FROM parts WHERE key = ?", (path_order(part),)
            ).fetchone()
            if row is not None:
                return PartTimes(part, *row) if _sound(row, int, int) else None
    return None


def _sound(row: tuple[object, ...] | None, *kinds: type) -> bool:
    """Return True for a row with values of these types, which SQLite itself does not check."""
    return row is not None and all(map(isinstance, row, kinds))


def _opened(path: Path) -> sqlite3.Connection:
    """Open the record to be read only; raises `sqlite3.Error` if it is missing."""
    uri = f"file:{quote(bytes(path))}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)


def _summary(name: bytes, rows: Iterable[_Row]) -> VerifySummary:
    """Sum up rows of one directory."""
    parts = list(rows)
    metadata = _times(part.metadata for part in parts)
    content = _times(part.content for part in parts)
    damaged = sum(part.damaged for part in parts)
    return VerifySummary(RelPath(name), len(parts), metadata, content, damaged)


def _times(times: Iterator[int]) -> VerifyTimes:
    """Count what was never compared or has changed, with oldest and newest times."""
    all_of_them = list(times)
    valid = [time for time in all_of_them if time > 0]
    changed = sum(time < 0 for time in all_of_them)
    never = len(all_of_them) - len(valid) - changed
    return VerifyTimes(never, changed, min(valid, default=0), max(valid, default=0))


def _values(times: VerifyTimes) -> dict[str, object]:
    return {
        "never": times.never,
        "changed": times.changed,
        "oldest": times.oldest or None,
        "newest": times.newest or None,
    }
