"""Detection of directories of an attr tree that another program changed.

The ctime of a directory changes when a name in it is added, removed or replaced, and no program can
set it.  The state records the spans in which huai changed the attr tree; a directory with a ctime
outside of them was changed by another program (a cleaner of temporary folders, say) or by hand.

This finds missing and extraneous entries, which clients would delete or fetch, and needs no list of
directories.  It does not find changes of an entry's size, time or mode, changes within one of the
spans, or changes while the clock was set back; `check` finds those.
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
"""The clock of Linux from which file systems take times (clock_gettime(2))."""
_LEAF_LINKS = 2
"""The links of a directory without subdirectories, if the file system counts them (not Btrfs)."""
_OUT_OF_REACH = (errno.EACCES, errno.ENAMETOOLONG)
"""The errors for a directory whose mode denies its owner, or whose path is too long."""


def coarse_now() -> int:
    """Return the present in nanoseconds, at most the ctime of any later change."""
    return time.clock_gettime_ns(_REALTIME_COARSE)


def until_now(begun: int) -> tuple[int, int]:
    """Return the span from `begun`, a value of `coarse_now`, until now, in nanoseconds."""
    return begun, time.clock_gettime_ns(time.CLOCK_REALTIME)


class ForeignChanges:
    """A pass over the served attr tree, in slices of time; takes no lock."""

    def __init__(self, fallback: FallbackPlaces) -> None:
        self._fallback = fallback
        self._state = _load_settled(fallback)
        self._begun = coarse_now()
        self._results = self._check_directories(self._state) if self._state else iter(())
        self.damage: Path | None = None
        """The directory that another program changed, once it is found."""

    def run(self, deadline: float | None = None) -> bool:
        """Continue until `deadline` (monotonic clock); return True if the pass is over.

        The pass is over after all directories, or when it finds `damage`.
        """
        for number, changed in enumerate(self._results):
            # If huai began a change meanwhile, the state differs.
            if changed is not None:
                if _load_settled(self._fallback) == self._state:
                    self.damage = changed
                return True
            if deadline is not None and number % 64 == 0 and time.monotonic() > deadline:
                return False
        return True

    def merged_spans(self, state: AttrState) -> _Spans:
        """Return the spans of `state`, with one for all that a whole pass found undamaged."""
        if self._state is None or self.damage is not None:
            return state.spans
        later = tuple(each for each in state.spans if each not in self._state.spans)
        # The pass has checked all changes up to its beginning, so one span can replace those.
        return ((0, self._begun), *later)

    def _check_directories(self, state: AttrState) -> Iterator[Path | None]:
        """Yield for each directory None, or its path if another program changed it."""
        waiting = [str(self._fallback.generations / state.generation)]
        while waiting:
            folder = waiting.pop()
            try:
                status = os.lstat(folder)
                if status.st_nlink != _LEAF_LINKS:
                    waiting += _folders(folder)
            except OSError as error:
                # It was removed after its parent was read, or its mode denies this user.
                yield None if error.errno in _OUT_OF_REACH else Path(folder).parent
                continue
            ctime = status.st_ctime_ns
            is_own = any(start <= ctime <= end for start, end in state.spans)
            yield None if is_own and stat.S_ISDIR(status.st_mode) else Path(folder)


def _folders(folder: str) -> list[str]:
    """Return the paths of the subdirectories of a folder; raises `OSError`."""
    with os.scandir(folder) as entries:
        return [each.path for each in entries if each.is_dir(follow_symlinks=False)]


def _load_settled(fallback: FallbackPlaces) -> AttrState | None:
    """Return the state of the attr tree; None without one, or while huai changes the tree.

    Also None for a tree that other programs cannot change.
    """
    state = STATE_FILE.load(fallback.state)
    return state if state is not None and state.target is None and state.spans else None
