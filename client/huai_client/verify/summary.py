"""When the parts of a tree were last verified, for `status`; a `verify` may be writing."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from huai_client.state.verification import DAMAGES
from huai_schema.paths import RelPath, ancestors, path_order

_BUSY_SECONDS = 5


class LookTimes(NamedTuple):
    """When a number of parts were verified, in one way."""

    never: int
    """Parts that were never verified."""
    changed: int
    """Parts that a commit has changed since they were."""
    oldest: int
    """The earliest time of the other parts, seconds since the epoch; 0: there are none."""
    newest: int


class VerifySummary(NamedTuple):
    """How a directory of the top level was verified, or the whole tree."""

    path: RelPath
    """Empty: the part of the top directory itself."""
    parts: int
    metadata: LookTimes
    """By attributes."""
    content: LookTimes
    """By digest."""
    damaged: int
    """Paths that differed when they were last looked at."""

    def values(self) -> dict[str, object]:
        """For JSON; times in seconds since the epoch, None where there is none."""
        return {
            "parts": self.parts,
            "metadata": _values(self.metadata),
            "content": _values(self.content),
            "damaged": self.damaged,
        }


class Account(NamedTuple):
    """What the record of one module says."""

    applied: str
    """The commit whose parts they are."""
    whole: VerifySummary
    tops: list[VerifySummary]
    """By path."""


class Times(NamedTuple):
    """When the part that holds a path was last verified; times as in `state.verification`."""

    part: RelPath
    metadata: int
    content: int


class _Row(NamedTuple):
    key: bytes
    metadata: int
    content: int
    damaged: int


def read_account(path: Path) -> Account | None:
    """What the record at `path` says; None if it is missing or damaged."""
    try:
        with closing(_opened(path)) as db:
            current = db.execute("SELECT applied FROM current").fetchone()
            found = db.execute("SELECT key, metadata, content, damaged FROM parts ORDER BY key")
            rows = [_Row(*row) for row in found]
    except DAMAGES:
        return None
    if not _sound(current, str) or not all(_sound(row, bytes, int, int, int) for row in rows):
        return None
    tops = groupby(rows, key=lambda row: row.key.partition(b"\0")[0])
    return Account(current[0], _summary(b"", rows), [_summary(*top) for top in tops])


def times_of(path: Path, inside: RelPath) -> Times | None:
    """What the record at `path` says of the part that holds `inside`; None: nothing."""
    with suppress(*DAMAGES), closing(_opened(path)) as db:
        for part in (inside, *ancestors(inside)):
            found = db.execute(
                "SELECT metadata, content FROM parts WHERE key = ?", (path_order(part),)
            ).fetchone()
            if found is not None:
                return Times(part, *found) if _sound(found, int, int) else None
    return None


def _sound(row: tuple[object, ...] | None, *kinds: type) -> bool:
    """Whether there is a row with values of these types, which SQLite itself does not check."""
    return row is not None and all(map(isinstance, row, kinds))


def _opened(path: Path) -> sqlite3.Connection:
    uri = f"file:{quote(bytes(path))}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)


def _summary(name: bytes, rows: Iterable[_Row]) -> VerifySummary:
    parts = list(rows)
    metadata = _look(part.metadata for part in parts)
    content = _look(part.content for part in parts)
    damaged = sum(part.damaged for part in parts)
    return VerifySummary(RelPath(name), len(parts), metadata, content, damaged)


def _look(times: Iterator[int]) -> LookTimes:
    all_of_them = list(times)
    valid = [time for time in all_of_them if time > 0]
    changed = sum(time < 0 for time in all_of_them)
    never = len(all_of_them) - len(valid) - changed
    return LookTimes(never, changed, min(valid, default=0), max(valid, default=0))


def _values(look: LookTimes) -> dict[str, object]:
    return {
        "never": look.never,
        "changed": look.changed,
        "oldest": look.oldest or None,
        "newest": look.newest or None,
    }
