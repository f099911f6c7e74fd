"""How far behind a mirror was over the last 30 days, from the moments at which it attested.

Pure.  The lag at a moment is how long a commit has been there that the mirror does not hold; 0 if
it holds the newest.  So it grows by a second each second until the mirror has synced, and a row
(end, lag just before the end) says all of the time since the row before.
"""

from typing import NamedTuple, Self

WINDOW_SECONDS = 30 * 86_400
ROWS_MAX = 4096
"""One for each sync that brought something; the oldest go first."""

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
