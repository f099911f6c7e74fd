"""Looking for damage: was a directory of an attr tree changed while huai was not at it?

The kernel notes for each directory when a name in it last came, went or was replaced, and no
program can set that time.  The state knows the spans in which huai has changed the attr tree, so
a directory with a time outside of them was changed by somebody else: by a cleaner of temporary
folders, or by hand.  No list of directories has to be kept, and no file is looked at: what this
finds is an entry that is missing or is too many, which clients would delete or fetch.  What it
does not find: an entry whose size, time or mode was changed, a change within one of the spans,
and one made while the clock was set back.  For these there is `check`.
"""

import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from huai_server.fallback.attr import state as states
from huai_server.fallback.attr.state import AttrState
from huai_server.paths import FallbackPlaces

_Spans = tuple[tuple[int, int], ...]
_REALTIME_COARSE = 5
"""The clock of Linux that file systems take times from (clock_gettime(2))."""
_LEAF_LINKS = 2
"""Of a directory without any directory in it, where links are counted at all (not on Btrfs)."""
_OUT_OF_REACH = (errno.EACCES, errno.ENAMETOOLONG)
"""Listed as shut to its owner, who is an ordinary user; or too deep for one path."""


def begin() -> int:
    """The time before a change that starts now: no later than the kernel is going to note."""
    return time.clock_gettime_ns(_REALTIME_COARSE)


def until_now(begun: int) -> tuple[int, int]:
    """From then until now."""
    return begun, time.clock_gettime_ns(time.CLOCK_REALTIME)


class Scrub:
    """One pass over the attr tree that is served; takes no lock, and time only as it is given."""

    def __init__(self, fallback: FallbackPlaces) -> None:
        """Nothing is looked at yet."""
        self._fallback = fallback
        self._state = _settled(fallback)
        self._begun = begin()
        self._looks = self._changed(self._state) if self._state else iter(())
        self.damage: Path | None = None
        """The directory that was changed, once it is found."""

    def run(self, deadline: float | None = None) -> bool:
        """Go on until then, by the monotonic clock, or to the end; whether the pass is over."""
        for number, changed in enumerate(self._looks):
            # A change by huai that began meanwhile is announced in the state first.
            if changed is not None:
                if _settled(self._fallback) == self._state:
                    self.damage = changed
                return True
            if deadline is not None and number % 64 == 0 and time.monotonic() > deadline:
                return False
        return True

    def proved(self, state: AttrState) -> _Spans:
        """What its spans come to after a pass that is over and has found nothing."""
        if self._state is None or self.damage is not None:
            return state.spans
        later = tuple(each for each in state.spans if each not in self._state.spans)
        # All there is now is as huai has made it: what comes is younger than the pass.
        return ((0, self._begun), *later)

    def _changed(self, state: AttrState) -> Iterator[Path | None]:
        """For each directory None, or its path if it was changed by somebody else."""
        waiting = [str(self._fallback.generations / state.generation)]
        while waiting:
            folder = waiting.pop()
            try:
                status = os.lstat(folder)
                if status.st_nlink != _LEAF_LINKS:
                    waiting += _folders(folder)
            except OSError as error:
                # What was there a moment ago is gone; or nobody but the maker can look there.
                yield None if error.errno in _OUT_OF_REACH else Path(folder).parent
                continue
            noted = status.st_ctime_ns
            within = any(start <= noted <= end for start, end in state.spans)
            yield None if within and stat.S_ISDIR(status.st_mode) else Path(folder)


def _folders(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [each.path for each in entries if each.is_dir(follow_symlinks=False)]


def _settled(fallback: FallbackPlaces) -> AttrState | None:
    """The state, if the attr tree is one that can be damaged and that nobody is changing."""
    state = states.load(fallback.state)
    return state if state is not None and state.target is None and state.spans else None
