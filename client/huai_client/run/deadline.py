"""The time at which a run has to stop: a value that is passed down, never a global.

Rule: at the deadline nothing new is begun, transfers are ended, and arrived content is kept.
Publishing is never cut short: it takes seconds, and half of it has no use.
Measured by the monotonic clock, so that setting the time of day moves no deadline.
"""

import time
from typing import NamedTuple, Self

from huai_schema.errors import ExitCode, HuaiError

_NEVER = float("inf")


class TimeUpError(HuaiError):
    """The time limit of the run has passed; rsync ends alike with `--stop-after`."""

    exit_code = ExitCode.TIMEOUT


class Deadline(NamedTuple):
    """A point in time, or never."""

    at: float = _NEVER
    """Seconds of the monotonic clock."""

    @classmethod
    def after(cls, seconds: float | None) -> Self:
        """Return the deadline so many seconds from now; without `seconds`, `NEVER`."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """The remaining seconds; negative after the deadline, infinite without one."""
        return self.at - time.monotonic()

    @property
    def over(self) -> bool:
        """True if the deadline has passed."""
        return self.left <= 0

    def bound(self, seconds: float) -> float:
        """Return `seconds`, or the remaining time if that is less, but at least one second."""
        return min(seconds, max(1.0, self.left))

    def check(self, progress: str) -> None:
        """Raise `TimeUpError` if the deadline has passed; `progress` is part of the message."""
        if self.over:
            raise TimeUpError(f"time is up; {progress}", hint="the next run continues from here")


NEVER = Deadline()
"""The deadline of runs without a time limit."""
