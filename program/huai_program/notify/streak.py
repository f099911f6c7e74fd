"""Failures in a row, as a small file that is there while there are some.

A run that holds a lock counts as failed from its beginning until it has ended well, so one that was
killed is counted by itself.  A file that is torn counts as missing: it costs a notification that is
late, or told twice.  It is not synced to the disk for the same reason, except once it is told.
"""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta

from huai_program.record_file import RecordFile

_Number = Annotated[int, Meta(ge=0, lt=1 << 62)]


class Streak(NamedTuple):
    """What is known of the last runs."""

    failed: _Number = 0
    """How many in a row."""
    since: _Number = 0
    """When the first of them failed, seconds since the epoch."""
    told: bool = False
    """Whether somebody was told, and not yet that it is over."""
    running: bool = False
    """Whether the last one has not ended."""

    def longer(self, now: int, *, running: bool = False) -> "Streak":
        """The same with one more failure."""
        since = self.since if self.failed else now
        return Streak(self.failed + 1, since, self.told, running)


_FILE = RecordFile(Streak, needed=False)


def load(path: Path) -> Streak:
    """The streak; an empty one if there is none, or none that can be read."""
    return _FILE.load(path) or Streak()


def save(path: Path, streak: Streak) -> None:
    """Replace the file, or delete it; a run does not fail if it cannot be written."""
    with suppress(OSError):
        if streak == Streak():
            path.unlink(missing_ok=True)
        else:
            _FILE.save(path, streak, durable=streak.told)
