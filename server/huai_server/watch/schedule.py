"""The time of the next commit: after a quiet period, or a maximum wait after the first change.

Pure.  Times are seconds of the caller's monotonic clock.
"""


class Schedule:
    """The changes since the last commit, and the time at which the next one is due."""

    def __init__(self, *, delay: float, at_most: float) -> None:
        """Commit after `delay` seconds without a change, or `at_most` seconds after the first."""
        self._delay = delay
        self._at_most = at_most
        self._limit: float | None = None
        """The latest time of the next commit; None if no commit is needed."""
        self._last = 0.0
        self._before: float | None = None
        self.since: float | None = None
        """The time of the oldest change that waits; None if no change waits."""
        self.changes = 0
        """The number of events since the last commit began."""

    def due(self) -> float | None:
        """Return the time of the next commit; None if no commit is needed."""
        if self._limit is None:
            return None
        return min(self._limit, self._last + self._delay)

    def commit_now(self, now: float) -> None:
        """Make a commit due now, even without a change."""
        self._limit = self._last = now - self._delay

    def commit_later(self, now: float) -> None:
        """Make a commit due `at_most` seconds after `now`, unless one is already due."""
        if self._limit is None:
            self._limit = self._last = now + self._at_most

    def add_events(self, now: float, events: int) -> None:
        """Count events at `now`; a commit is due `delay` later, or `at_most` after the first."""
        self.changes += events
        self._last = now
        if self._limit is None:
            self._limit = now + self._at_most
        if self.since is None:
            self.since = now

    def begin_commit(self) -> None:
        """Begin a commit; later events count for the next one."""
        self._before, self.since, self._limit, self.changes = self.since, None, None, 0

    def restore(self, now: float) -> None:
        """Keep the changes of a failed commit waiting; retry it `at_most` seconds after `now`."""
        self.since = self.since if self._before is None else self._before
        self._limit = None
        self.commit_later(now)
