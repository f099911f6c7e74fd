"""How long old commits stay.

Pure.  Commits stand in *histories*: the first commit of one has no parent, and the newest commit of
each that is over has a ref that nobody sees.  A history goes as a whole.  So no commit is ever
without its parent, as git wants it, and nothing that a client has is changed: it compares trees.
"""

from typing import NamedTuple


class Retention(NamedTuple):
    """What stays at least; at most as many commits more do."""

    seconds: int | None
    """Commits younger than that; None: all."""
    commits: int
    """So many of the newest, and the length of a history."""

    def is_full(self, length: int) -> bool:
        """Whether a history of so many commits is over: the next commit begins another one."""
        return self.seconds is not None and length >= self.commits

    def drops(self, serial: int, time: int, *, newest: int, now: float) -> bool:
        """Whether the history goes whose last commit has this serial, and was made at `time`.

        `newest` is the serial of the newest commit; times in seconds since the epoch.
        """
        if self.seconds is None:
            return False
        return newest - serial >= self.commits and time <= now - self.seconds


FOREVER = Retention(None, 1)
"""Nothing goes."""
