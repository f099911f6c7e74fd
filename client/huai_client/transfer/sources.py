"""The content URLs of one transfer, in the order in which they are worth trying.

Shared by all streams: the experience of one with a URL saves the others the attempt.  URLs that
failed recently, in this run or another, are tried last.  URLs of the lowest priority number come
first; those of equal priority in their order, or by turns if any of them has a share.

A slow URL is left for one that was four times as fast in this run, and once for one of unknown
speed.  So no URL holds a file while another idles, and on a connection that is slow itself the run
does not switch forever.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from huai_client.state.upstream_health import UpstreamHealth
from huai_client.transfer.errors import (
    TransferError,
    UpstreamFullError,
    UpstreamRefusedError,
    WrongContentError,
)
from huai_client.transfer.urls import ContentUrl

_DRIP = 32 << 10
"""Bytes a second: a slower URL is left for one of unknown speed."""
_FASTER = 4
_MEASURED_SECONDS, _MEASURED_BYTES = 1.0, 1 << 20
"""A shorter transfer of less is not a measurement."""
_MOMENT = 0.001


class Sources:
    """The URLs that may still be used, the last good one first."""

    def __init__(self, urls: Sequence[ContentUrl], health: UpstreamHealth) -> None:
        """`urls` in the order of preference; raises `UpstreamRefusedError` if there are none."""
        if not urls:
            raise UpstreamRefusedError(
                "no content URL is known", hint="set one on the server, or in the configuration"
            )
        self._memory = health
        order = dict.fromkeys(urls)

        def rank(url: ContentUrl) -> tuple[bool, int]:
            return health.failed_lately(url.service, str(url)), url.priority

        self._urls = sorted(order, key=rank)
        self._assigned: Counter[ContentUrl] = Counter()
        self._refusal: UpstreamRefusedError | None = None
        self._rates: dict[ContentUrl, float] = {}
        """Bytes a second of each URL's last transfer."""
        self._left: set[ContentUrl] = set()
        """The URLs that were left for one of unknown speed."""
        self._lock = threading.Lock()

    def usable(self) -> list[ContentUrl]:
        """Return the URLs to try, in order; raises the last refusal if none is left."""
        with self._lock:
            if not self._urls and self._refusal:
                raise self._refusal
            return list(self._urls)

    @property
    def divides(self) -> bool:
        """True if any URL has a share."""
        return any(url.share for url in self._urls)

    def turn(self, size: int) -> list[ContentUrl]:
        """Return the usable URLs for `size` bytes; the one that got least of its share is first."""
        urls = self.usable()
        with self._lock:
            first = urls[0].priority if urls else 0
            tier = [url for url in takewhile(lambda url: url.priority == first, urls) if url.share]
            if not tier:
                return urls
            turn = min(tier, key=lambda url: (self._assigned[url] + size) / url.share)
            self._assigned[turn] += size
        return [turn, *(url for url in urls if url != turn)]

    def measured(self, url: ContentUrl, size: int, seconds: float) -> None:
        """Record that `url` sent `size` bytes."""
        if seconds >= _MEASURED_SECONDS or size >= _MEASURED_BYTES:
            with self._lock:
                self._rates[url] = size / max(seconds, _MOMENT)

    def leave(self, url: ContentUrl, rate: float) -> bool:
        """Return True if another URL should be tried, as `url` sends `rate` bytes a second."""
        with self._lock:
            rest = [other for other in self._urls if other != url]
            if any(self._rates.get(other, 0.0) > _FASTER * rate for other in rest):
                return True
            if rate >= _DRIP or url in self._left or all(each in self._rates for each in rest):
                return False
            self._left.add(url)
            return True

    def answered(self, url: ContentUrl) -> None:
        """Record that `url` sent what it has."""
        self._memory.succeeded(url.service, str(url))

    def failed(self, url: ContentUrl, failure: TransferError) -> bool:
        """Try `url` after the others, or not at all; return True if there will be another attempt.

        A full upstream is not a failure: the stream that waits there reports it.  A URL with wrong
        content is not used again, as long as there is another.
        """
        refused = isinstance(failure, UpstreamRefusedError)
        wrong = isinstance(failure, WrongContentError)
        full = isinstance(failure, UpstreamFullError)
        if not full:
            # An error of one module may not concern other modules of that service.
            self._memory.failed(str(url) if refused or wrong else url.service, failure.message)
        with self._lock:
            if url in self._urls:
                self._urls.remove(url)
                if not refused and not (wrong and self._urls):
                    self._urls.append(url)
            if isinstance(failure, UpstreamRefusedError):
                self._refusal = failure
            return bool(self._urls) and not full
