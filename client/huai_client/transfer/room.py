"""What a run of rsync needs before it begins: a slot, a place at the host, some bandwidth.

Waits for each of them in this order, and for nothing while it holds the last: so nobody
waits in a circle, and no bandwidth lies idle in somebody's hands.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple

from huai_client.transfer.bandwidth import Bandwidth
from huai_client.transfer.line import Line
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.tally import Tally
from huai_client.transfer.urls import ContentUrl


class Room(NamedTuple):
    """What a run was given."""

    places: tuple[int, ...]
    """Handles that rsync inherits, and holds till its end."""
    bwlimit: int
    """KiB/s; 0: no limit."""


class Rooms:
    """Shared by all streams of a transfer."""

    def __init__(self, options: TransferOptions, width: int, line: Line, tally: Tally) -> None:
        """At most `width` runs at a time."""
        self._options = options
        self._width = width
        self._line = line
        self._tally = tally
        self._slots = threading.Semaphore(width)
        self._bandwidth = Bandwidth(options.bwlimit, width)
        self._busy = 0
        self._guard = threading.Lock()

    @contextmanager
    def room(
        self, url: ContentUrl, queued: Callable[[], int], pause: Callable[[float], None]
    ) -> Iterator[Room]:
        """Wait for it, and hold it; `queued` says how many batches no stream has taken yet.

        `pause` waits for so many seconds, and ends the waiting by raising.
        """
        options = self._options
        limit = options.hosts.connection_limit(url.host, options.connections, options.streams)
        with ExitStack() as stack:
            stack.enter_context(self._slots)
            stack.enter_context(self._counted())
            places: tuple[int, ...] = ()
            if limit is not None:
                reason = f"{url.host}: all {limit.connections} connections are in use here"
                waits = partial(self._tally.waiting, reason)
                places = (stack.enter_context(limit.slot(pause, waits)),)
            others = min(queued(), self._width - self._busy) - self._line.standing
            yield Room(places, stack.enter_context(self._bandwidth.share(others, pause)))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._guard:
            self._busy += 1
        try:
            yield
        finally:
            with self._guard:
                self._busy -= 1
