"""Whether a run of rsync still moves.

Silence is rsync's own business (`--timeout`); this is for a trickle.  Rule: rsync's processes
have to read, from network and disk together, at least `PACE` bytes a second over each
`timeout` seconds; no bandwidth limit is that low.  Disk counts because rsync may be busy with
the checksums of a large basis for longer than any timeout.
"""

import re
import time
from collections.abc import Callable

PACE = 256
"""Bytes a second.  Little: a thousand small files from a busy disk are no trickle."""
_READ = re.compile(rb"^rchar: ([0-9]+)$", re.MULTILINE)


class Pace:
    """A watch over one run."""

    def __init__(
        self, window: float, pace: float = PACE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`pace` in bytes a second, over each `window` of seconds."""
        self._window = window
        self._least = pace * window
        self._clock = clock
        self._began = clock()
        self._before = 0

    def lost(self, count: Callable[[], int | None]) -> bool:
        """Whether too little came in the window that ends now; `count` is asked at its end only.

        It says how much came in all; None: nobody knows.
        """
        now = self._clock()
        if now - self._began < self._window:
            return False
        total = count()
        if total is None:
            return False
        moved, self._before, self._began = total - self._before, total, now
        return moved < self._least


def bytes_read(process: int) -> int | None:
    """What a process and its children have read by now (proc(5): `rchar`); None: not known."""
    try:
        with open(f"/proc/{process}/io", "rb") as file:
            found = _READ.search(file.read())
        with open(f"/proc/{process}/task/{process}/children", "rb") as file:
            children = file.read().split()
    except OSError:
        return None
    return (int(found[1]) if found else 0) + sum(bytes_read(int(child)) or 0 for child in children)
