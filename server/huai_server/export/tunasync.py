"""`tunasync.json`: the module as `/jobs` of tunasync's manager has it, an array of one.

The fields are those of `WebMirrorStatus` in tunasync's source.  A moment that does not exist is
Go's zero time, as there.  The size is written as rsync writes it: units of a thousand.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from huai_schema.paths import RelPath
from huai_server.export.source import Source, Wanted

_PATH = RelPath(b"tunasync.json")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = -62_135_596_800
"""The first second of the year 1."""
_UNITS = ("", "K", "M", "G", "T", "P")


def paths(_: Wanted) -> tuple[RelPath, ...]:
    """The one file."""
    return (_PATH,)


def texts(source: Source, wanted: Wanted) -> Iterator[tuple[RelPath, Iterator[bytes]]]:
    """The one file."""
    now = source.stamp(wanted.heartbeat)
    status = job(source.module, source.time, (now, now), wanted.upstream, source.size)
    yield _PATH, iter((json.dumps([status], indent=1).encode() + b"\n",))


def job(
    name: str, update: int, run: tuple[int, int], upstream: str, size: int
) -> dict[str, object]:
    """One job that went well: its last update, and when its last run began and ended.

    Seconds since the epoch, and bytes.
    """
    status: dict[str, object] = {"name": name, "is_master": True, "status": "success"}
    moments = {
        "last_update": update,
        "last_started": run[0],
        "last_ended": run[1],
        "next_schedule": _NEVER,
    }
    for key, seconds in moments.items():
        status |= {key: _shown(seconds), f"{key}_ts": seconds}
    return status | {"upstream": upstream, "size": shown_size(size)}


def _shown(seconds: int) -> str:
    when = _EPOCH + timedelta(seconds=seconds)
    return f"{when.year:04}-{when:%m-%d %H:%M:%S} +0000"


def shown_size(size: float) -> str:
    """Bytes as rsync writes them: in units of a thousand."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.2f}{unit}" if unit else f"{size:.0f}"
        size /= 1000
    return f"{size:.2f}{_UNITS[-1]}"
