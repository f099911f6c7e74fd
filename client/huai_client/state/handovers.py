"""The calls of `huai-rsync` in a row that the real rsync carried out in a module's tree.

One small file for people, which no decision depends on.  The next call that huai carries out
removes it.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from huai_client.state.history import REASON_MOST, Number
from huai_program.humanize import counted, moment
from huai_program.record_file import RecordFile

_DAY = 86_400


class Handovers(msgspec.Struct, frozen=True):
    """A series of calls; times are in seconds since the epoch."""

    since: Number
    calls: Number
    reason: str
    """The reason of the last one."""
    told: Number  # prose: a key of the file
    """The time at which the first call of a day was reported."""

    def __str__(self) -> str:
        """Return one sentence for people."""
        calls = counted(self.calls, "call", "calls")
        return (
            f"huai-rsync left {calls} to the real rsync since {moment(self.since)}: {self.reason}"
        )


_FILE = RecordFile(Handovers, needed=False, durable=False)


def load(path: Path) -> Handovers | None:
    """Return the series of calls; None if the file is missing, damaged or unreadable."""
    return _FILE.load(path)


def add(path: Path, reason: str, now: int) -> bool:
    """Record a call at `now` (s since the epoch); return True if none was reported within a day.

    The caller then reports it.  A failure to write is ignored.
    """
    before = load(path) or Handovers(since=now, calls=0, reason="", told=0)
    first = not before.told <= now < before.told + _DAY
    record = Handovers(
        since=before.since,
        calls=before.calls + 1,
        reason=reason[:REASON_MOST],
        told=now if first else before.told,
    )
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _FILE.save(path, record)
    return first


def clear(path: Path) -> None:
    """Delete the record, if any, because huai carried out a call; errors are ignored."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
