"""Decides how long one run follows an upstream that changes meanwhile.

Rule: each plan publishes the files that arrived, unless they depend on one that did not
(`plan.withhold`).  If content did not arrive and the upstream has a newer commit, the run plans for
that commit; arrived files are kept, so each plan fetches only what has changed since.  The run
continues while it makes progress: within the last `_TRIES` plans fewer files were missing than ever
before.  No plan begins later than `_LONGEST_SECONDS` after the first one was carried out, since a
timer may start the next run as well.  An upstream that had a newer commit during the run is in the
middle of an update, so a run with missing content waits for the next commit.

Pure: `pause` and `clock` are arguments.
"""

import time
from collections.abc import Callable

_TRIES = 10
_LONGEST_SECONDS = 300.0
_PATIENCE_SECONDS = 15.0
_POLL_SECONDS = 0.5


class Following:
    """The decision after each plan of a run to plan again or to end."""

    def __init__(
        self,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        *,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        """Use `pause` to sleep for a number of seconds.

        `patience`: the longest wait (s) for the next commit of an upstream that had one in the run.
        """
        self._pause = pause
        self._clock = clock
        self._patience = patience
        self._until = float("inf")
        self._least: int | None = None
        self._left = _TRIES
        self.plans = 1
        """The number of plans so far."""

    def has_moved_on(self, missing: int, is_newer: Callable[[], bool]) -> bool:
        """Return True to plan again, after `missing` files did not arrive; may wait for a commit.

        `is_newer` asks the upstream whether it has a newer commit.  False if it has none, after ten
        plans in a row without progress, and five minutes after the first call.
        """
        if self._least is None:
            self._until = self._clock() + _LONGEST_SECONDS
        if self._least is None or missing < self._least:
            self._least, self._left = missing, _TRIES
        else:
            self._left -= 1
        late = self._clock() >= self._until
        if late or self._left <= 0 or not self._comes(is_newer):
            return False
        self.plans += 1
        return True

    def _comes(self, is_newer: Callable[[], bool]) -> bool:
        """Return True if a newer commit exists; waits for it, if this run has met one before."""
        patience = self._patience if self.plans > 1 else 0.0
        waited = 0.0
        while not is_newer():
            if waited >= patience:
                return False
            self._pause(_POLL_SECONDS)
            waited += _POLL_SECONDS
        return True
