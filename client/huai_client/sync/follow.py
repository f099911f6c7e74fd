"""How long one run follows an upstream that moves on under it.

Rule: of each plan everything is published that came and depends on nothing that did not
(`plan.withhold`).  If some content did not come, and the upstream has a newer commit, that one is
planned next; what has arrived is kept, so each plan fetches only what changed since.  A run goes
on like that as long as it gets closer: as fewer files than ever before were missing within the
last `_TRIES` plans; and for no longer than `_LONGEST_SECONDS` after its first plan was carried out,
since a timer may start the next run as well.  An upstream that moved on once in a run is in the
middle of an update; where content is missing, its next commit is waited for.  So a run ends in step
as soon as what changes during one plan can be fetched before it changes again, and it always ends.

Reads no disk and no network; waits by what it is given.
"""

import time
from collections.abc import Callable

_TRIES = 10
_LONGEST_SECONDS = 300.0
_PATIENCE_SECONDS = 15.0
_POLL_SECONDS = 0.5


class Following:
    """What one run has seen of its upstream."""

    def __init__(
        self,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`pause` waits for so many seconds."""
        self._pause = pause
        self._clock = clock
        self._until = float("inf")
        self._least: int | None = None
        self._left = _TRIES
        self.plans = 1
        """How many were made."""

    def has_moved_on(self, missing: int, is_newer: Callable[[], bool]) -> bool:
        """Whether to plan anew, after `missing` files of the last plan did not come.

        `is_newer` asks whether the upstream has a newer commit.
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
        patience = _PATIENCE_SECONDS if self.plans > 1 else 0.0
        waited = 0.0
        while not is_newer():
            if waited >= patience:
                return False
            self._pause(_POLL_SECONDS)
            waited += _POLL_SECONDS
        return True
