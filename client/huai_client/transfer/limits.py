"""What keeps a transfer within bounds: admission, back-off, bandwidth, and an end to stalls.

- `Admission`: what a run of rsync needs before it begins: a slot of this transfer, a connection to
  the host, some bandwidth.  It waits for each in this order, and for nothing while it holds the
  last: so nobody waits in a circle, and no bandwidth is held idle.
- `BusyBackoff`: a refusal for want of room is no failure as long as one of our streams gets
  anything, and then for `patience` seconds more.  A stream that is refused asks again after a pause
  that doubles until it is admitted, with jitter.
- `Bandwidth`: rsync cannot change its limit while it runs.  The limit is divided into as many equal
  parts as there are streams; a run gets its own part, and an even share of those that no other
  stream is about to need; a stream for which no part is left begins when one is given back.  So the
  sum never exceeds the limit, and the last stream of a transfer does not crawl.  The limit is of
  one module: modules that are synced at the same time have one each.
- `StallDetector`: silence is rsync's own business (`--timeout`); this is for a trickle.  rsync's
  processes have to read, from network and disk together, at least `MINIMUM_RATE` bytes a second
  over each `timeout` seconds; no bandwidth limit is that low.  Disk counts because rsync may be
  busy with the checksums of a large basis for longer than any timeout.

Reads no clock but those it is given.
"""

import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple

from huai_client.transfer.options import TransferOptions
from huai_client.transfer.tally import Tally
from huai_client.transfer.urls import ContentUrl

_PAUSE_MAX = 30.0
_DOUBLINGS = 10
_POLL_SECONDS = 0.2
MINIMUM_RATE = 256
"""Bytes a second.  Little: a thousand small files from a busy disk are no trickle."""
_READ = re.compile(rb"^rchar: ([0-9]+)$", re.MULTILINE)


class BusyBackoff:
    """Shared by all streams of a transfer."""

    def __init__(
        self, patience: float, pause: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`patience` and the first `pause` in seconds."""
        self._patience = patience
        self._pause = pause
        self._clock = clock
        self._guard = threading.Lock()
        self._since: float | None = None
        self._refusals: dict[int, int] = {}
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many streams wait now."""
        return self._waiting

    def admitted(self, stream: int) -> None:
        """`stream` was let in, and gets something."""
        with self._guard:
            self._since = None
            self._refusals.pop(stream, None)

    def refused(self, stream: int) -> float | None:
        """`stream` was not let in: seconds until it should ask again; None: patience is over."""
        with self._guard:
            now = self._clock()
            since = now if self._since is None else self._since
            self._since = since
            if now - since >= self._patience:
                return None
            before = self._refusals.get(stream, 0)
            self._refusals[stream] = before + 1
        longest = min(_PAUSE_MAX, self._pause * 2 ** min(before, _DOUBLINGS))
        pause: float = longest * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, hides nothing
        return min(pause, since + self._patience - now)

    @contextmanager
    def counted_as_waiting(self) -> Iterator[None]:
        """Count a stream as waiting within."""
        with self._guard:
            self._waiting += 1
        try:
            yield
        finally:
            with self._guard:
                self._waiting -= 1


class Bandwidth:
    """Shared by all streams."""

    def __init__(self, limit: int, streams: int) -> None:
        """`limit` in KiB/s; 0: none."""
        self._limit = limit
        self._parts = max(1, min(streams, limit or streams))
        self._free = self._parts
        self._guard = threading.Lock()

    @contextmanager
    def share(self, others: int, pause: Callable[[float], None]) -> Iterator[int]:
        """KiB/s for a run, 0 for no limit, while `others` are about to begin one as well.

        `pause` waits for so many seconds, and ends the waiting by raising.
        """
        if not self._limit:
            yield 0
            return
        while not (parts := self._take(others)):
            pause(_POLL_SECONDS)
        try:
            yield self._limit * parts // self._parts
        finally:
            with self._guard:
                self._free += parts

    def _take(self, others: int) -> int:
        with self._guard:
            parts = min(self._free, max(1, self._free // (max(0, others) + 1)))
            self._free -= parts
            return parts


class Grant(NamedTuple):
    """What a run was given."""

    slots: tuple[int, ...]
    """Handles that rsync inherits, and holds till its end."""
    bwlimit: int
    """KiB/s; 0: no limit."""


class Admission:
    """Shared by all streams of a transfer."""

    def __init__(
        self,
        options: TransferOptions,
        width: int,
        busy: BusyBackoff,
        tally: Tally,
        queue: Sized,
    ) -> None:
        """At most `width` runs at a time; `queue` holds what no stream has taken yet."""
        self._options = options
        self._width = width
        self._busy_backoff = busy
        self._tally = tally
        self._queue = queue
        self._slots = threading.Semaphore(width)
        self._bandwidth = Bandwidth(options.bwlimit, width)
        self._busy = 0
        self._guard = threading.Lock()

    @contextmanager
    def admit(self, url: ContentUrl, pause: Callable[[float], None]) -> Iterator[Grant]:
        """Wait until a run may begin at `url`, and hold what it needs.

        `pause` waits for so many seconds, and ends the waiting by raising.
        """
        options = self._options
        limit = options.hosts.connection_limit(url.host, options.connections, options.streams)
        with ExitStack() as stack:
            stack.enter_context(self._slots)
            stack.enter_context(self._counted())
            slots: tuple[int, ...] = ()
            if limit is not None:
                reason = f"{url.host}: all {limit.connections} connections are in use here"
                waits = partial(self._tally.waiting, reason)
                slots = (stack.enter_context(limit.slot(pause, waits)),)
            others = min(len(self._queue), self._width - self._busy) - self._busy_backoff.waiting
            yield Grant(slots, stack.enter_context(self._bandwidth.share(others, pause)))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._guard:
            self._busy += 1
        try:
            yield
        finally:
            with self._guard:
                self._busy -= 1


class StallDetector:
    """Watches one run of rsync."""

    def __init__(
        self, window: float, rate: float = MINIMUM_RATE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`rate` in bytes a second, over each `window` of seconds."""
        self._window = window
        self._least = rate * window
        self._clock = clock
        self._began = clock()
        self._before = 0

    def stalled(self, count: Callable[[], int | None]) -> bool:
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
