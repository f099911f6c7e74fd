"""The limits of a transfer: admission, back-off at a busy upstream, bandwidth, stalls.

- `Admission`: before a run of rsync begins, it needs a slot of this transfer, a connection to the
  host and a share of the bandwidth.  Each run waits for them in this order, and for nothing once it
  has bandwidth: so runs cannot wait for each other, and no bandwidth is held idle.
- `BusyBackoff`: a refusal by an upstream that is full is not a failure as long as one of the
  streams receives anything, and for `patience` seconds after that.  A refused stream retries after
  a pause, with jitter, that doubles until it is admitted.
- `Bandwidth`: rsync cannot change its limit while it runs.  The limit is divided into as many equal
  parts as there are streams; a run gets its own part, and an even share of those that no other
  stream is about to need; a stream for which no part is left begins when one is returned.  So the
  sum never exceeds the limit, and the last stream of a transfer is not slow.  Each module has a
  limit of its own, also when several are synced at the same time.
- `StallDetector`: rsync itself ends a silent connection (`--timeout`), but not a very slow one.
  rsync's processes have to read, from network and disk together, at least `MINIMUM_RATE` bytes/s
  over each `timeout` seconds; no bandwidth limit is that low.  Disk counts because rsync may be
  busy with the checksums of a large basis for longer than any timeout.

Reads no clock but the given ones.
"""

import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple

from huai_client.transfer.listener import Tally
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.urls import ContentUrl, Transport

_PAUSE_MAX = 30.0
_DOUBLINGS = 10
_POLL_SECONDS = 0.2
HTTP_CONNECTIONS = 4
"""Connections of one stream with one request at a time each (HTTP/1.1): two streams use a little
more than the six of a browser, for which web servers are made."""
MINIMUM_RATE = 256
"""Bytes a second.  Low, because a thousand small files from a busy disk are slow as well."""
_ANSWER_LEAST, _ANSWER_SHARE = 30.0, 5
"""Seconds, and share of `timeout`."""
_READ = re.compile(rb"^rchar: ([0-9]+)$", re.MULTILINE)


class BusyBackoff:
    """The back-off of all streams of a transfer, at an upstream that is full."""

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
        self.waiting = 0
        """The number of streams that wait now."""

    def admitted(self, stream: int) -> None:
        """Record that `stream` receives data, so that `patience` and its pauses start over."""
        with self._guard:
            self._since = None
            self._refusals.pop(stream, None)

    def refused(self, stream: int, retry_after: float = 0) -> float | None:
        """Record a refusal; return the seconds to wait, or None if `patience` is exhausted.

        The wait has the `retry_after` seconds that the upstream demands, and a pause that doubles
        with each refusal of `stream`; it ends with `patience`.
        """
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
        return min(retry_after + pause, since + self._patience - now)

    @contextmanager
    def counted_as_waiting(self) -> Iterator[None]:
        """Count a stream as waiting within the block."""
        with self._guard:
            self.waiting += 1
        try:
            yield
        finally:
            with self._guard:
                self.waiting -= 1


class Bandwidth:
    """The bandwidth of a transfer, shared by its streams."""

    def __init__(self, limit: int, streams: int) -> None:
        """`limit` in KiB/s; 0 for no limit."""
        self._limit = limit
        self._parts = max(1, min(streams, limit or streams))
        self._free = self._parts
        self._guard = threading.Lock()

    @contextmanager
    def share(self, rivals: int, pause: Callable[[float], None]) -> Iterator[int]:
        """Wait for a share of the bandwidth, and hold it within the block; yield it in KiB/s.

        0 for no limit.  `rivals`: the streams that are about to begin a run as well.  `pause`
        sleeps for a number of seconds; it raises to end the waiting.
        """
        if not self._limit:
            yield 0
            return
        while not (parts := self._take_parts(rivals)):
            pause(_POLL_SECONDS)
        try:
            yield self._limit * parts // self._parts
        finally:
            with self._guard:
                self._free += parts

    def _take_parts(self, rivals: int) -> int:
        """Take this stream's share of the free parts; return how many."""
        with self._guard:
            parts = min(self._free, max(1, self._free // (max(0, rivals) + 1)))
            self._free -= parts
            return parts


class Grant(NamedTuple):
    """The share of one run in the limits: slots of the host, bandwidth and connections."""

    slots: tuple[int, ...]
    """Handles that rsync inherits, and holds until it ends."""
    bwlimit: int
    """KiB/s; 0 for no limit."""
    connections: int = 1
    """Connections to the host at a time."""


class Admission:
    """The admission of runs, shared by all streams of a transfer."""

    def __init__(
        self, options: TransferOptions, width: int, busy: BusyBackoff, tally: Tally, queue: Sized
    ) -> None:
        """At most `width` runs at a time; `queue` has the batches that no stream has taken yet."""
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
        """Wait until a run may begin at `url`, and hold its resources within the block.

        `pause` sleeps for a number of seconds; it raises to end the waiting.  Raises
        `ConnectionLimitError` if the lock files of the host cannot be made.
        """
        options = self._options
        several = HTTP_CONNECTIONS if url.transport is Transport.HTTP else 1
        usual = options.streams * several
        limit = options.hosts.connection_limit(url.host, options.connections, usual, several)
        with ExitStack() as stack:
            stack.enter_context(self._slots)
            stack.enter_context(self._counted())
            slots: tuple[int, ...] = ()
            if limit is not None:
                reason = f"{url.host}: all {limit.connections} connections are in use here"
                waits = partial(self._tally.waiting, reason)
                slots = (stack.enter_context(limit.slot(pause, waits)),)
                slots += stack.enter_context(limit.more(several - 1))
            rivals = min(len(self._queue), self._width - self._busy) - self._busy_backoff.waiting
            share = stack.enter_context(self._bandwidth.share(rivals, pause))
            yield Grant(slots, share, len(slots) or several)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a stream as busy during the block."""
        with self._guard:
            self._busy += 1
        try:
            yield
        finally:
            with self._guard:
                self._busy -= 1


class StallDetector:
    """Detects a run of rsync that stalls."""

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
        """Return True if a window ends now in which too little was read.

        `count` returns the bytes read since the start, None if unknown; called once a window.
        """
        now = self._clock()
        if now - self._began < self._window:
            return False
        total = count()
        if total is None:
            return False
        moved, self._before, self._began = total - self._before, total, now
        return moved < self._least


def answer_seconds(timeout: float) -> float:
    """Return the seconds to wait for the first byte: a fifth of `timeout`, or 30 if that is more.

    Never more than `timeout`.
    """
    return min(timeout, max(_ANSWER_LEAST, timeout / _ANSWER_SHARE))


def bytes_read(process: int) -> int | None:
    """Return the bytes read by a process and its children (proc(5): `rchar`), None if unknown."""
    try:
        with open(f"/proc/{process}/io", "rb") as file:
            match = _READ.search(file.read())
        with open(f"/proc/{process}/task/{process}/children", "rb") as file:
            children = file.read().split()
    except OSError:
        return None
    return (int(match[1]) if match else 0) + sum(bytes_read(int(child)) or 0 for child in children)
