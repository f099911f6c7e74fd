"""`tunasync.json`: the module in the format of `/jobs` of tunasync's manager, an array of one.

The fields are those of `WebMirrorStatus` in tunasync's source.  A missing time is Go's zero time,
as there.  The size is in rsync's notation, with units of a thousand.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from huai_schema.paths import RelPath
from huai_server.export.source import ExportRequest, Source

_PATH = RelPath(b"tunasync.json")
_NEVER = -62_135_596_800
"""The first second of the year 1."""
_UNITS = ("", "K", "M", "G", "T", "P")


def paths(_: ExportRequest) -> tuple[RelPath, ...]:
    """Return the path of `tunasync.json`."""
    return (_PATH,)


def texts(source: Source, request: ExportRequest) -> Iterator[tuple[RelPath, Iterator[bytes]]]:
    """Yield `tunasync.json`, with the module as a successful job."""
    now = source.stamp(request.heartbeat)
    status = job(source.module, source.time, (now, now), request.upstream, source.size)
    yield _PATH, iter((json.dumps([status], indent=1).encode() + b"\n",))


def job(
    name: str, update: int, run: tuple[int, int], upstream: str, size: int
) -> dict[str, object]:
    """Return a successful job with its last update, and the start and end of its last run.

    Times are seconds since the epoch, `size` is bytes.
    """
    status: dict[str, object] = {"name": name, "is_master": True, "status": "success"}
    moments = {
        "last_update": update,
        "last_started": run[0],
        "last_ended": run[1],
        "next_schedule": _NEVER,
    }
    for key, seconds in moments.items():
        status |= {key: _format_time(seconds), f"{key}_ts": seconds}
    return status | {"upstream": upstream, "size": shown_size(size)}


def _format_time(seconds: int) -> str:
    """Format seconds since the epoch as Go's time in UTC."""
    when = datetime.fromtimestamp(seconds, UTC)
    return f"{when.year:04}-{when:%m-%d %H:%M:%S} +0000"


def shown_size(size: float) -> str:
    """Format bytes as rsync does, in units of a thousand."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.2f}{unit}" if unit else f"{size:.0f}"
        size /= 1000
    return f"{size:.2f}{_UNITS[-1]}"
