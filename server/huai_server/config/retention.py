"""How long old commits stay.

Pure.  Commits stand in *histories*: the first commit of one has no parent, and the newest commit of
each that is over has a ref that nobody sees.  A history goes as a whole.  So no commit is ever
without its parent, as git wants it, and nothing that a client has is changed: it compares trees.
Old histories wait for others: whenever some go, all that stays is written again.
"""

from typing import NamedTuple

_WRITTEN_AGAIN = 2
"""Commits that are written again for each that goes, at most."""


class Retention(NamedTuple):
    """What stays at least; half as many commits more may, and a history."""

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


def is_worth_repack(dropped: int, left: int) -> bool:
    """Whether so many commits go now, for which those that are left are written again.

    Otherwise busy modules, of which a history gets old every other day, would be written again
    that often.
    """
    return left <= dropped * _WRITTEN_AGAIN


FOREVER = Retention(None, 1)
"""Nothing goes."""
