"""The content URLs of one transfer, in the order in which they are worth trying, and their pace.

Shared by all streams: the experience of one with a URL saves the others the attempt.  URLs that
failed recently, in this run or another, are tried last.  URLs of the lowest priority number come
first; those of equal priority in their order, or by turns if any of them has a share.

A slow URL is left for one that was four times as fast in this run, and once for one of unknown
speed.  So no URL holds a file while another idles, and on a connection that is slow itself the run
does not switch forever.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import takewhile

from huai_client.state.hosts import Hosts
from huai_client.state.upstreams import UpstreamHealth
from huai_client.transfer.errors import (
    TransferError,
    UpstreamFullError,
    UpstreamRefusedError,
    WrongContentError,
)
from huai_client.transfer.urls import ContentUrl, Transport

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
                "no content URL is known",
                hint="set content_urls in client.toml, or have the upstream name one",
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

    def add(self, url: ContentUrl) -> None:
        """Try `url` after all others."""
        with self._lock:
            self._urls.append(url)

    def usable(self) -> list[ContentUrl]:
        """Return the URLs to try, in order.

        Raises the last `UpstreamRefusedError` if none is left.
        """
        with self._lock:
            if not self._urls and self._refusal:
                raise self._refusal
            return list(self._urls)

    @property
    def divides(self) -> bool:
        """True if any URL has a share."""
        return any(url.share for url in self._urls)

    def turn(self, size: int) -> list[ContentUrl]:
        """Return the usable URLs; the first got least of its share, and is charged with `size`.

        Without shares among those of the first priority, they are in order, and none is charged.
        Raises as `usable` does.
        """
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
        """Record that `url` sent `size` bytes in `seconds`, unless under 1 MiB and one second."""
        if seconds >= _MEASURED_SECONDS or size >= _MEASURED_BYTES:
            with self._lock:
                self._rates[url] = size / max(seconds, _MOMENT)

    def leave(self, url: ContentUrl, rate: float) -> bool:
        """Return True if another URL should be tried, as `url` sends `rate` bytes a second.

        For the sake of one of unknown speed `url` is left once.
        """
        with self._lock:
            rest = [other for other in self._urls if other != url]
            if any(self._rates.get(other, 0.0) > _FASTER * rate for other in rest):
                return True
            if rate >= _DRIP or url in self._left or all(each in self._rates for each in rest):
                return False
            self._left.add(url)
            return True

    def answered(self, url: ContentUrl) -> None:
        """Record that `url` responded, so that its earlier failures are forgotten."""
        self._memory.succeeded(url.service, str(url))

    def failed(self, url: ContentUrl, failure: TransferError) -> bool:
        """Try `url` after the others, or not at all if it refused; return True if a URL is left.

        The failure is recorded for other runs as well.  A full upstream is not a failure, and gives
        False: the stream that waits there reports it.  A URL with wrong content is not used again,
        as long as there is another.
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


_WINDOW = 30.0
"""Seconds over which the rate is measured, or the timeout if that is less."""
_LEFT_SECONDS = 60.0
"""Seconds: an attempt that ends sooner at its rate is not interrupted."""
_FREE_SHARE = 4
"""A rate above a fourth of the bandwidth limit is due to the limit, not to the URL."""
_KIBIBYTE = 1024


class Pace:
    """The rate of one attempt, watched to find out if another URL would be faster."""

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


_RANKED = 3
_FEW = 6


def fastest(urls: Sequence[ContentUrl], hosts: Hosts) -> list[ContentUrl]:
    """Return at most six of `urls`: the three fastest, one that is not measured, then others.

    So each of the hundreds that an upstream may name gets its trial in time.
    """
    measured = [
        (speed.expected, url) for url in urls if (speed := hosts.speed.of_service(url.service))
    ]
    ranked = [url for _, url in sorted(measured, key=lambda each: each[0])]
    unknown = [url for url in urls if url not in ranked]
    return [*ranked[:_RANKED], *unknown[:1], *ranked[_RANKED:], *unknown[1:]][:_FEW]


def to_sample(urls: Sequence[ContentUrl], hosts: Hosts) -> list[ContentUrl]:
    """Return at most three of `urls` of HTTP whose speed is not known; empty for a single URL."""
    if len(urls) < 2:  # nothing to choose from
        return []
    http = (url for url in urls if url.transport is Transport.HTTP)
    return [url for url in http if hosts.speed.of_service(url.service) is None][:_RANKED]


def note_speed(
    url: ContentUrl, hosts: Hosts, size: int, seconds: float, first_byte: float = 0
) -> None:
    """Record the speed of `url`, if the upstream named it: our own have a configured order.

    `size` bytes arrived in `seconds`; `first_byte`: seconds until the first one, 0 if unknown.
    """
    if not url.own:
        hosts.speed.observe(url.service, size, seconds, first_byte)
