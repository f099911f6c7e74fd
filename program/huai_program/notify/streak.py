"""A streak of failures, in a small file that exists during the streak.

A run under a lock counts as failed from its beginning until it has ended well, so a killed one is
counted without further code.  A torn file counts as missing, which makes a notification late, or
repeats it.  For the same reason it is not synced to the disk until a notification was sent.
"""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta

from huai_program.record_file import RecordFile

_Number = Annotated[int, Meta(ge=0, lt=1 << 62)]


class Streak(NamedTuple):
    """The record of the last runs."""

    failed: _Number = 0
    since: _Number = 0
    """The time of the first failure, seconds since the epoch."""
    reported: bool = False
    """True if the failure was reported, and not yet the recovery."""
    running: bool = False

    def longer(self, now: int, *, running: bool = False) -> "Streak":
        """Return the streak with one more failure."""
        since = self.since if self.failed else now
        return Streak(self.failed + 1, since, self.reported, running)


_FILE = RecordFile(Streak, needed=False)


def load(path: Path) -> Streak:
    """Return the streak; an empty one if the file is missing or unreadable."""
    return _FILE.load(path) or Streak()


def save(path: Path, streak: Streak) -> None:
    """Replace the file, or delete it; a run does not fail if it cannot be written."""
    with suppress(OSError):
        if streak == Streak():
            path.unlink(missing_ok=True)
        else:
            _FILE.save(path, streak, durable=streak.reported)
