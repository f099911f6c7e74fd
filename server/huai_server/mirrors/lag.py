"""How far behind a mirror was over the last 30 days, from the moments at which it attested.

Pure.  The lag at a moment is how long a commit has been there that the mirror does not hold; 0 if
it holds the newest.  So it grows by a second each second until the mirror has synced, and a row
(end, lag just before the end) says all of the time since the row before.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, Self

WINDOW_SECONDS = 30 * 86_400
ROWS_MAX = 4096
"""One for each sync that brought something; the oldest go first."""
PERCENTILES = (50, 90, 99)

Row = tuple[int, int]
"""A moment in seconds since the epoch, and the lag just before it in seconds."""


class LagHistory(NamedTuple):
    """What is kept of one mirror of one module."""

    begun: int
    """From when on it is known, seconds since the epoch."""
    rows: tuple[Row, ...] = ()

    @property
    def end(self) -> int:
        """Until when."""
        return self.rows[-1][0] if self.rows else self.begun

    def extended(self, end: int, lag: int) -> Self:
        """With one more row; equal ones become one, and what is too old goes."""
        rows = [*self.rows, (end, lag)]
        if len(rows) > 1 and lag == 0 == rows[-2][1]:
            del rows[-2]
        begun = self.begun
        while rows and (rows[0][0] <= end - WINDOW_SECONDS or len(rows) > ROWS_MAX):
            begun = rows.pop(0)[0]
        return type(self)(begun, tuple(rows))

    def percentiles(self, now: int, lag: int) -> tuple[int, ...]:
        """The lag in seconds that the mirror kept to for so much of the time until `now`.

        `lag`: what it is now.
        """
        whole, ramps = self._ramps(now, lag)
        total = whole + sum(high - low for low, high in ramps)
        most = max((high for _, high in ramps), default=0)

        def kept(bound: int) -> int:
            """Seconds in which the lag was no more than `bound`."""
            return whole + sum(max(0, min(bound, high) - low) for low, high in ramps)

        return tuple(
            bisect_left(range(most), -(-total * each // 100), key=kept) for each in PERCENTILES
        )

    def _ramps(self, now: int, lag: int) -> tuple[int, Sequence[tuple[int, int]]]:
        """Seconds without lag, and between which values it grew."""
        whole, ramps = 0, []
        begin = max(self.begun, now - WINDOW_SECONDS)
        for end, before in (*self.rows, (now, lag)):
            if end <= begin:
                continue
            rising = min(end - begin, before)
            whole += end - begin - rising
            if rising:
                ramps.append((before - rising, before))
            begin = end
        return whole, ramps
