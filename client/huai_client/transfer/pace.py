"""The pace of an attempt, which ends if another URL could send the files sooner."""

import time
from collections.abc import Callable

from huai_client.transfer.sources import Sources
from huai_client.transfer.urls import ContentUrl

_WINDOW = 30.0
"""Seconds over which the rate is measured, or the timeout if that is less."""
_LEFT_SECONDS = 60.0
"""Seconds: an attempt that ends sooner at its rate is not interrupted."""
_FREE_SHARE = 4
"""A rate above a fourth of the bandwidth limit is due to the limit, not to the URL."""
_KIBIBYTE = 1024


class Pace:
    """The rate of one attempt."""

    def __init__(
        self,
        sources: Sources,
        url: ContentUrl,
        size: int,
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`size`: bytes of the requested files; `timeout` in seconds."""
        self._sources = sources
        self._url = url
        self._size = size
        self._window = min(timeout, _WINDOW)
        self._clock = clock
        self._began = clock()
        self._before = 0

    def is_too_slow(self, done: int, moved: Callable[[], int | None], bwlimit: int) -> bool:
        """Return True if another URL should be tried; called now and then.

        `done`: bytes of the files so far.  `moved` returns all bytes that were read, from network
        and disk, None if unknown: rsync may be busy with a large basis.  `bwlimit`: KiB/s of this
        attempt, 0 for no limit.
        """
        now = self._clock()
        if now - self._began < self._window:
            return False
        total = moved()
        if total is None:
            return False
        rate = max(0, total - self._before) / (now - self._began)
        self._before, self._began = total, now
        ends_soon = self._size - done <= rate * _LEFT_SECONDS
        limited = bwlimit and rate * _FREE_SHARE > bwlimit * _KIBIBYTE
        return not ends_soon and not limited and self._sources.leave(self._url, rate)
