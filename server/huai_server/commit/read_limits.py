"""The resources that a run may use to read content."""

from typing import NamedTuple

from huai_native._native import Pace

TOO_LARGE = "too large for the time and the rate that were given"
"""The reason for a file that a whole run was not enough for: each run begins it again."""


class ReadLimits(NamedTuple):
    """The values of `--time` and `--rate`."""

    seconds: float | None = None
    """The time after which reading stops, if it is limited."""
    rate: int = 0
    """Bytes of content a second, on average; 0 for no limit."""

    def pace(self) -> Pace:
        """Return the limits for the engine; the time begins now."""
        return Pace(self.rate, self.seconds)
