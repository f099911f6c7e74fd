"""The moment at which a run has to have stopped: a value that is handed down, never a global.

Rule: at the deadline nothing new is begun, what is in flight is ended, and what has arrived is
kept.  Publishing is never cut short: it takes seconds, and half of it helps nobody.
Measured by the monotonic clock, so that setting the time of day moves no deadline.
"""

import time
from typing import NamedTuple, Self

from huai_schema.errors import ExitCode, HuaiError

_NEVER = float("inf")


class TimeUpError(HuaiError):
    """The time that the run was given is over; rsync ends alike when it is told to stop."""

    exit_code = ExitCode.TIMEOUT


class Deadline(NamedTuple):
    """A moment, or none."""

    at: float = _NEVER
    """Seconds of the monotonic clock."""

    @classmethod
    def after(cls, seconds: float | None) -> Self:
        """So many seconds from now; None: never."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds; negative when it is over, infinite if there is no deadline."""
        return self.at - time.monotonic()

    @property
    def over(self) -> bool:
        """Whether it has passed."""
        return self.left <= 0

    def bound(self, seconds: float) -> float:
        """`seconds`, or what is left if that is less; but a second, so that an answer can come."""
        return min(seconds, max(1.0, self.left))

    def check(self, what: str) -> None:
        """Raise `TimeUpError` if it has passed; `what` is the state of things by then."""
        if self.over:
            raise TimeUpError(f"time is up; {what}", hint="the next run continues from here")


NEVER = Deadline()
"""For runs that may take as long as they need."""
