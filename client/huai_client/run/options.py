"""The options of a single run, in place of the configuration, and its deadline."""

import time
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_client.filters import Rules

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


class SyncOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a single run."""

    max_delete: str | None = None
    """The limit of deletions, in place of the configured one."""
    adopt: bool = False
    """Compare the whole tree, even if a commit is recorded as applied."""
    delete_extraneous: bool = False
    """Delete extraneous paths, where the whole tree is compared."""
    accept_rollback: bool = False
    """Go back to a lower serial."""
    max_delete_in: tuple[str, ...] = ()
    """Limits as DIRECTORY=LIMIT, in place of the configured ones."""
    unhold: bool = False
    """Continue after an undo."""
    filter: tuple[str, ...] | None = None
    """The filter to plan for, in place of the configured one; files are relative to the cwd."""
    only: "Rules | None" = None
    """Add and change only the paths that these include, and delete nothing."""
    deadline: Deadline = NEVER
    """The time to stop."""
    compare: bool = False
    """Compare the whole tree with the applied commit as well, and repair it."""
    undeletable: "Rules | None" = None
    """Rules that protect paths from deletion, as on rsync's receiving side."""
