"""The lag of a mirror over the last 30 days, computed from the times of its attestations.

Pure.  The lag at a moment is the time for which a commit newer than the mirror's has existed; 0 if
the mirror has the newest.  It grows by a second each second until the mirror has synced, so a row
(end, lag just before the end) describes all the time since the previous row.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, Self

DAYS, DAY_SECONDS = 30, 86_400
WINDOW_SECONDS = DAYS * DAY_SECONDS
ROWS_MAX = 4096
"""The most rows, one for each sync with changes; the oldest are dropped first."""
PERCENTILES = (50, 90, 99)

Row = tuple[int, int]
"""A moment in seconds since the epoch, and the lag just before it in seconds."""


class LagHistory(NamedTuple):
    """The lag of one mirror of one module."""

    begun: int
    """The start of the record, in seconds since the epoch."""
    rows: tuple[Row, ...] = ()

    @property
    def end(self) -> int:
        """The end of the record, in seconds since the epoch."""
        return self.rows[-1][0] if self.rows else self.begun

    def extended(self, end: int, lag: int) -> Self:
        """Return the history with the row (`end`, `lag`), and without rows older than the window.

        Two rows without lag in succession become one.  The oldest of more than `ROWS_MAX` are
        dropped.
        """
        rows = [*self.rows, (end, lag)]
        if len(rows) > 1 and lag == 0 == rows[-2][1]:
            del rows[-2]
        begun = self.begun
        while rows and (rows[0][0] <= end - WINDOW_SECONDS or len(rows) > ROWS_MAX):
            begun = rows.pop(0)[0]
        return type(self)(begun, tuple(rows))

    def percentiles(self, now: int, lag: int) -> tuple[int, ...]:
        """Return the `PERCENTILES` of the lag in seconds over the 30 days that end at `now`.

        `lag` is the lag at `now`; time before the record does not count.
        """
        seconds_without_lag, ramps = self._ramps(now, lag)
        total = seconds_without_lag + sum(high - low for low, high in ramps)
        most = max((high for _, high in ramps), default=0)

        def seconds_within(bound: int) -> int:
            """Return the seconds in which the lag was at most `bound`."""
            return seconds_without_lag + sum(max(0, min(bound, high) - low) for low, high in ramps)

        return tuple(
            bisect_left(range(most), -(-total * each // 100), key=seconds_within)
            for each in PERCENTILES
        )

    def days(self, now: int, lag: int) -> tuple[int | None, ...]:
        """Return the most lag in seconds of each of the last 30 days (UTC), the oldest first.

        `lag` is that at `now`.  None for a day before the record.
        """
        first = now // DAY_SECONDS - DAYS + 1
        most: list[int | None] = [None] * DAYS
        begin = self.begun
        for end, before in (*self.rows, (now, lag)):
            # A row may end after `now`, if the clock was set back.
            for day in range(max(first, begin // DAY_SECONDS), min(end, now) // DAY_SECONDS + 1):
                # It grows until the end of the row, which may be on another day.
                peak = max(0, before - max(0, end - (day + 1) * DAY_SECONDS))
                most[day - first] = max(peak, most[day - first] or 0)
            begin = end
        return tuple(most)

    def arrival(self, committed: int, now: int, lag: int) -> int | None:
        """Return the time at which the mirror got the commit made at `committed`.

        None if it has not got the commit yet, or got it before the record.  Times are seconds since
        the epoch; `lag` is the lag at `now`.
        """
        if committed < self.begun:
            return None
        following = (*self.rows[1:], (now, lag))
        for (end, _), (later, before) in zip(self.rows, following, strict=False):
            # After the end of a row, the mirror lacks what was committed since `later - before`.
            if end >= committed and committed < later - before:
                return end
        return None

    def _ramps(self, now: int, lag: int) -> tuple[int, Sequence[tuple[int, int]]]:
        """Return the seconds of the window without lag, and (from, to) for each time that it grew.

        From and to are the lag in seconds at the begin and the end of that time.
        """
        seconds_without_lag, ramps = 0, []
        begin = max(self.begun, now - WINDOW_SECONDS)
        for end, before in (*self.rows, (now, lag)):
            if end <= begin:
                continue
            rising = min(end - begin, before)
            seconds_without_lag += end - begin - rising
            if rising:
                ramps.append((before - rising, before))
            begin = end
        return seconds_without_lag, ramps
