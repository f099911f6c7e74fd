"""Changes of others: was a directory of an attr tree changed by another program?

The ctime of a directory changes when a name in it is added, removed or replaced, and no program can
set it.  The state records the spans in which huai changed the attr tree; a directory with a ctime
outside of them was changed by another program (a cleaner of temporary folders, say) or by hand.

So this finds entries that are missing or extraneous, which clients would delete or fetch, and it
needs no list of directories.  It does not find an entry whose size, time or mode was changed, a
change within one of the spans, or one that was made while the clock was set back; `check` does.
"""

import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from huai_server.fallback.attr.state import STATE_FILE, AttrState
from huai_server.state.paths import FallbackPlaces

_Spans = tuple[tuple[int, int], ...]
_REALTIME_COARSE = 5
"""The clock of Linux that file systems take times from (clock_gettime(2))."""
_LEAF_LINKS = 2
"""Links of a directory without subdirectories, on file systems that count them (not Btrfs)."""
_OUT_OF_REACH = (errno.EACCES, errno.ENAMETOOLONG)
"""A directory with a mode that shuts out its owner, or with a path that is too long."""


def begin() -> int:
    """The beginning of a span; no ctime of a change that follows is earlier."""
    return time.clock_gettime_ns(_REALTIME_COARSE)


def until_now(begun: int) -> tuple[int, int]:
    """The span from `begun` until now."""
    return begun, time.clock_gettime_ns(time.CLOCK_REALTIME)


class ForeignChanges:
    """One pass over the attr tree that is served, in slices of time; takes no lock."""

    def __init__(self, fallback: FallbackPlaces) -> None:
        self._fallback = fallback
        self._state = _settled(fallback)
        self._begun = begin()
        self._looks = self._changed(self._state) if self._state else iter(())
        self.damage: Path | None = None
        """The directory that was changed, once it is found."""

    def run(self, deadline: float | None = None) -> bool:
        """Go on until `deadline` (monotonic clock) or to the end; returns whether it is the end."""
        for number, changed in enumerate(self._looks):
            # If huai began a change meanwhile, the state says so.
            if changed is not None:
                if _settled(self._fallback) == self._state:
                    self.damage = changed
                return True
            if deadline is not None and number % 64 == 0 and time.monotonic() > deadline:
                return False
        return True

    def proved(self, state: AttrState) -> _Spans:
        """The spans to record: fewer than those of `state`, after a whole pass without damage."""
        if self._state is None or self.damage is not None:
            return state.spans
        later = tuple(each for each in state.spans if each not in self._state.spans)
        # The pass has seen all up to its beginning: one span stands for all until then.
        return ((0, self._begun), *later)

    def _changed(self, state: AttrState) -> Iterator[Path | None]:
        """For each directory None, or its path if another program changed it."""
        waiting = [str(self._fallback.generations / state.generation)]
        while waiting:
            folder = waiting.pop()
            try:
                status = os.lstat(folder)
                if status.st_nlink != _LEAF_LINKS:
                    waiting += _folders(folder)
            except OSError as error:
                # It was removed since its parent was read; or its mode shuts this user out.
                yield None if error.errno in _OUT_OF_REACH else Path(folder).parent
                continue
            noted = status.st_ctime_ns
            within = any(start <= noted <= end for start, end in state.spans)
            yield None if within and stat.S_ISDIR(status.st_mode) else Path(folder)


def _folders(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [each.path for each in entries if each.is_dir(follow_symlinks=False)]


def _settled(fallback: FallbackPlaces) -> AttrState | None:
    """The state of an attr tree that other programs can change, and that huai is not changing."""
    state = STATE_FILE.load(fallback.state)
    return state if state is not None and state.target is None and state.spans else None
