"""The content URLs of one transfer, in the order in which they are worth trying.

Shared by all streams: what one learns about a URL spares the others the attempt.  What
failed lately, in this run or another, is tried last.  URLs of the lowest priority number come
first; those of equal priority in their order, or by turns if any of them has a share.

A URL that drips is left: for one that has given four times as much in this run, and once for one
that nothing is known of.  So no URL holds a file while another idles, and on a line that is slow
itself the run does not go round in circles.
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
"""Bytes a second: who gives less is left for one that nothing is known of."""
_FASTER = 4
_MEASURED_SECONDS, _MEASURED_BYTES = 1.0, 1 << 20
"""A shorter transfer of less tells nothing."""
_MOMENT = 0.001


class Sources:
    """URLs that may still be asked, the last good one first."""

    def __init__(self, urls: Sequence[ContentUrl], health: UpstreamHealth) -> None:
        """`urls` in the order of preference; raises `UpstreamRefusedError` if there is none."""
        if not urls:
            raise UpstreamRefusedError(
                "no content URL is known", hint="give one on the server, or in the configuration"
            )
        self._memory = health
        order = dict.fromkeys(urls)

        def rank(url: ContentUrl) -> tuple[bool, int]:
            return health.failed_lately(url.service, str(url)), url.priority

        self._urls = sorted(order, key=rank)
        self._given: Counter[ContentUrl] = Counter()
        self._refusal: UpstreamRefusedError | None = None
        self._rates: dict[ContentUrl, float] = {}
        """Bytes a second that each has given last."""
        self._left: set[ContentUrl] = set()
        """The URLs that were left for one of unknown speed."""
        self._lock = threading.Lock()

    def usable(self) -> list[ContentUrl]:
        """What to try, in order; raises the last refusal if nothing is left."""
        with self._lock:
            if not self._urls and self._refusal:
                raise self._refusal
            return list(self._urls)

    @property
    def divides(self) -> bool:
        """Whether any URL has a share."""
        return any(url.share for url in self._urls)

    def turn(self, size: int) -> list[ContentUrl]:
        """As `usable`, for `size` bytes: whoever got least of its share comes first."""
        urls = self.usable()
        with self._lock:
            first = urls[0].priority if urls else 0
            tier = [url for url in takewhile(lambda url: url.priority == first, urls) if url.share]
            if not tier:
                return urls
            turn = min(tier, key=lambda url: (self._given[url] + size) / url.share)
            self._given[turn] += size
        return [turn, *(url for url in urls if url != turn)]

    def measured(self, url: ContentUrl, size: int, seconds: float) -> None:
        """Remember what `url` has given: `size` bytes."""
        if seconds >= _MEASURED_SECONDS or size >= _MEASURED_BYTES:
            with self._lock:
                self._rates[url] = size / max(seconds, _MOMENT)

    def leave(self, url: ContentUrl, rate: float) -> bool:
        """Return True if another URL is to be asked, as `url` gives so many bytes a second."""
        with self._lock:
            others = [other for other in self._urls if other != url]
            if any(self._rates.get(other, 0.0) > _FASTER * rate for other in others):
                return True
            if rate >= _DRIP or url in self._left or all(each in self._rates for each in others):
                return False
            self._left.add(url)
            return True

    def answered(self, url: ContentUrl) -> None:
        """`url` gave what it has."""
        self._memory.succeeded(url.service, str(url))

    def failed(self, url: ContentUrl, failure: TransferError) -> bool:
        """Try `url` after the others, or not at all; whether there will be another attempt.

        Being full is no failure: whoever waits there says so.  What sends wrong content is not
        asked again, as long as there is another.
        """
        refused = isinstance(failure, UpstreamRefusedError)
        wrong = isinstance(failure, WrongContentError)
        full = isinstance(failure, UpstreamFullError)
        if not full:
            # What is wrong with one module, may be right with others at that service.
            self._memory.failed(str(url) if refused or wrong else url.service, failure.message)
        with self._lock:
            if url in self._urls:
                self._urls.remove(url)
                if not refused and not (wrong and self._urls):
                    self._urls.append(url)
            if isinstance(failure, UpstreamRefusedError):
                self._refusal = failure
            return bool(self._urls) and not full
