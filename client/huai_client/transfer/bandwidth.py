"""One bandwidth limit shared by the streams of a transfer.

rsync cannot change its limit while it runs.  Rule: the limit is cut into as many equal parts as
there are streams; a run gets its own part, and an even share of those that no other stream
is about to need; a stream for which no part is left begins when one is given back.  So the
sum never exceeds the limit, and the last stream of a transfer does not crawl.  The limit
is of one module: modules that are synced at the same time have one each.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_POLL_SECONDS = 0.2


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
