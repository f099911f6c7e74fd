"""Failures in a row, as a small file that is there while there are some.

A run that holds a lock counts as failed from its beginning until it has ended well, so one that was
killed is counted by itself.  A file that is torn counts as missing: it costs a notification that is
late, or told twice.  It is not synced to the disk for the same reason, except once it is told.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from huai_program.durable import replace_file

_MOST_BYTES = 4096


class Streak(NamedTuple):
    """What is known of the last runs."""

    failed: int = 0
    """How many in a row."""
    since: int = 0
    """When the first of them failed, seconds since the epoch."""
    told: bool = False
    """Whether somebody was told, and not yet that it is over."""
    running: bool = False
    """Whether the last one has not ended."""

    def longer(self, now: int, *, running: bool = False) -> "Streak":
        """The same with one more failure."""
        since = self.since if self.failed else now
        return Streak(self.failed + 1, since, self.told, running)


def load(path: Path) -> Streak:
    """The streak; an empty one if there is none, or none that can be read."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
        failed, since, told, running = found
    except (OSError, ValueError, TypeError, RecursionError):
        return Streak()
    numbers = all(type(each) is int and 0 <= each < 1 << 62 for each in (failed, since))
    flags = type(told) is bool and type(running) is bool
    return Streak(failed, since, told, running) if numbers and flags else Streak()


def save(path: Path, streak: Streak) -> None:
    """Replace the file, or delete it; a run does not fail if it cannot be written."""
    content = json.dumps(streak).encode() + b"\n"
    with suppress(OSError):
        if streak == Streak():
            path.unlink(missing_ok=True)
        elif streak.told:
            replace_file(path, content, _temporary(path), permissions=0o600)
        else:
            temporary = _temporary(path)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(handle, "wb") as file:
                file.write(content)
            temporary.replace(path)


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + ".new")
