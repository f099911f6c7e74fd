"""When to commit: after a quiet time, at the latest so long after the first change.  Pure.

Times are seconds of one clock that never goes back; the caller has it.
"""


class Schedule:
    """What was seen since the last commit, and when the next one is due."""

    def __init__(self, *, delay: float, at_most: float) -> None:
        """`delay`: seconds without a change; `at_most`: seconds that a change waits at all."""
        self._delay = delay
        self._at_most = at_most
        self._limit: float | None = None
        """When the next commit is due at the latest."""
        self._last = 0.0
        """When the last change was seen."""
        self._before: float | None = None
        self.since: float | None = None
        """When the oldest change that waits was seen; None: none waits."""
        self.changes = 0
        """How many events were seen since the last commit began."""

    def due(self) -> float | None:
        """When to commit; None: nothing waits for that."""
        if self._limit is None:
            return None
        return min(self._limit, self._last + self._delay)

    def at_once(self, now: float) -> None:
        """Whatever was seen or not, commit now."""
        self._limit = self._last = now - self._delay

    def later(self, now: float) -> None:
        """Whatever is seen or not, commit once more."""
        if self._limit is None:
            self._limit = self._last = now + self._at_most

    def touched(self, now: float, events: int) -> None:
        """So many events were seen."""
        self.changes += events
        self._last = now
        if self._limit is None:
            self._limit = now + self._at_most
        if self.since is None:
            self.since = now

    def began(self) -> None:
        """A commit begins: what is seen from now on is of the next one."""
        self._before, self.since, self._limit, self.changes = self.since, None, None, 0

    def failed(self, now: float) -> None:
        """That commit failed: its changes wait on, and the next try is not too soon."""
        self.since = self.since if self._before is None else self._before
        self._limit = None
        self.later(now)
