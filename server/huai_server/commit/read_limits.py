"""How much of the machine a run that reads content may take."""

from typing import NamedTuple

from huai_native._native import Pace

TOO_LARGE = "too large for the time and the rate that were given"
"""Said of a file that the whole run was not enough for: each run begins it again."""


class ReadLimits(NamedTuple):
    """What `--time` and `--rate` say."""

    seconds: float | None = None
    """After that nothing more is read; None: until it is done."""
    rate: int = 0
    """Bytes of content a second, on average; 0: as fast as it goes."""

    def pace(self) -> Pace:
        """The same for the engine, from now on."""
        return Pace(self.rate, self.seconds)
