"""Retention of old commits.

Pure.  Commits form *histories*.  The first commit of a history has no parent, and the last commit
of a closed one has a ref that clients do not see.  A history is dropped as a whole, so that each
commit keeps its parent, as git requires.  Clients do not notice, because they compare trees.
Dropping rewrites all remaining commits, so old histories wait until several can go together.
"""

from typing import NamedTuple

_WRITTEN_AGAIN = 2
"""The most commits that are rewritten for each dropped commit."""


class Retention(NamedTuple):
    """The commits to keep at least; half as many more may remain, and a history."""

    seconds: int | None
    """The age in seconds up to which commits are kept; None for ever."""
    commits: int
    """The number of newest commits to keep, and the length of a history."""

    def is_full(self, length: int) -> bool:
        """Return True if the commit after a history of this length begins another one.

        False without `seconds`.
        """
        return self.seconds is not None and length >= self.commits

    def drops(self, serial: int, time: int, *, newest: int, now: float) -> bool:
        """Return True if a history whose last commit has this serial and time may be dropped.

        The commit must be older than `seconds` at `now`, and have at least `commits` newer ones;
        `newest` is the serial of the newest.  False without `seconds`.  Times are seconds since the
        epoch.
        """
        if self.seconds is None:
            return False
        return newest - serial >= self.commits and time <= now - self.seconds


def is_worth_repack(dropped: int, left: int) -> bool:
    """Return True if dropping `dropped` commits is worth rewriting `left`, at most twice as many.

    Otherwise a busy module, whose histories expire every other day, would be rewritten as often.
    """
    return left <= dropped * _WRITTEN_AGAIN


FOREVER = Retention(None, 1)
