"""Blocks of large files from web servers, of several at once.

Each range is proved by the index as soon as it arrives, so any mirror will do.  Rules:

- Mirrors of the lowest priority number are used at once, a few at a time; those of the next
  number for the blocks that are then missing.
- A mirror that sends a wrong block is not used for the rest of the run.  One that breaks, or is
  overtaken, is used for other files as a last resort.
- A mirror with another version of a file, or none, may have other files.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from itertools import groupby
from typing import TypeAlias

from huai_client.transfer.errors import NoRangesError, WrongContentError
from huai_client.transfer.http.ranges import Span
from huai_client.transfer.large.range_source import NewFile, RangeSource, Terms, WrongBlockError
from huai_client.transfer.large.shared_ranges import SharedRanges
from huai_client.transfer.limits import Admission, BusyBackoff
from huai_client.transfer.listener import Listener, Tally
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.rsync.run import ProcessGroup
from huai_client.transfer.sources import Sources
from huai_client.transfer.urls import ContentUrl, Transport

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""Begin and end of ranges of a file, in order."""

_SPAN = 8 << 20
"""Largest number of bytes of one request."""
_MIRRORS = 4
"""Mirrors at a time: each has several connections, and more would hardly be faster."""


class Pieces(AbstractContextManager["Pieces"]):
    """The pieces of all large files of one run, as a context manager."""

    def __init__(self, sources: Sources, options: TransferOptions, listener: Listener) -> None:
        """Connect to nothing yet; raises `UpstreamRefusedError` if all URLs refused."""
        self._sources = sources
        self._tally = Tally(listener)
        self._whole_only: set[ContentUrl] = set()
        """URLs that serve whole files only."""
        self._avoided: set[ContentUrl] = set()
        """URLs that broke or were overtaken."""
        urls = self.urls()
        largest = max((len(tier) for tier in _tiers(urls)), default=1)
        self._width = min(_MIRRORS, largest)
        busy = BusyBackoff(options.patience, options.backoff)
        admission = Admission(options, self._width, busy, self._tally, range(self._width))
        self._terms = Terms(options, admission, self._tally, ProcessGroup(options.deadline))
        self._range_sources = {
            url: RangeSource(number, url, self._terms) for number, url in enumerate(urls)
        }

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        for source in self._range_sources.values():
            source.close()

    @property
    def received(self) -> int:
        """Bytes over the wire so far."""
        return self._tally.received

    def urls(self) -> list[ContentUrl]:
        """Return the URLs that may have pieces, in the order of use; raises as `Sources.usable`."""
        usable = self._sources.usable()
        return [
            url for url in usable if url.transport is Transport.HTTP and url not in self._whole_only
        ]

    def add(self, url: ContentUrl) -> None:
        """Use `url` as well, after all others."""
        if url not in self._range_sources:
            self._sources.add(url)
            self._range_sources[url] = RangeSource(len(self._range_sources), url, self._terms)

    def fetch(self, new_file: NewFile, missing: Ranges) -> bool:
        """Write `missing` into the new file; return True if all of it arrived and is proved.

        Raises `OutOfTimeError` at the deadline, and `OSError` if the disk cannot take it.
        """
        size = sum(end - begin for begin, end in missing)
        self._tally.started(1, size)
        try:
            for urls in self._groups():
                missing = self._fetch_from(urls, new_file, missing)
                if not missing:
                    self._tally.arrived([new_file.file], size)
                    return True
            return False
        finally:
            self._tally.ended()

    def _groups(self) -> Iterator[list[ContentUrl]]:
        """Yield groups of URLs to use at the same time, in order; avoided URLs come last."""
        avoided = [url for url in self.urls() if url in self._avoided]
        for tier in _tiers(self.urls()):
            if usable := [url for url in tier if url not in avoided]:
                yield usable
        if avoided:
            yield avoided

    def _fetch_from(self, urls: Sequence[ContentUrl], new_file: NewFile, missing: Ranges) -> Ranges:
        """Fetch from several of `urls` at once; return the ranges that none of them sent."""
        for url in self._range_sources.keys() - urls[: self._width]:
            self._range_sources[url].close()  # its share of the limits is needed by others
        ranges, queue = SharedRanges(_spans(missing)), deque(urls)

        def work() -> None:
            """Fetch from one URL of the queue after the other."""
            while not ranges.over:
                try:
                    url = queue.popleft()
                except IndexError:  # another thread had the last one
                    return
                self._fetch_one(url, new_file, ranges)

        width = min(self._width, len(urls))
        with ThreadPoolExecutor(width, thread_name_prefix="huai-mirror") as pool:
            try:
                for part in as_completed([pool.submit(work) for _ in range(width)]):
                    part.result()
            except BaseException:
                ranges.end()
                raise
        return ranges.left()

    def _fetch_one(self, url: ContentUrl, new_file: NewFile, ranges: SharedRanges) -> None:
        """Fetch ranges from `url`; report a failure, after which it is used no longer, or last."""
        failure = self._range_sources[url].fetch(new_file, ranges)
        if failure is None:
            self._sources.answered(url)
            return
        self._tally.retried(failure.message)
        if isinstance(failure, WrongBlockError):
            self._sources.failed(url, failure)
        elif isinstance(failure, NoRangesError):
            self._whole_only.add(url)
        elif not isinstance(failure, WrongContentError):
            # The transfer of whole files will find any other failure.
            self._avoided.add(url)


def _tiers(urls: Sequence[ContentUrl]) -> Iterator[list[ContentUrl]]:
    """Yield the URLs of each priority, the lowest number first."""
    ordered = sorted(urls, key=lambda url: url.priority)
    for _, tier in groupby(ordered, key=lambda url: url.priority):
        yield list(tier)


def _spans(ranges: Ranges) -> Iterator[Span]:
    """Yield the ranges, cut into spans of at most `_SPAN` bytes."""
    for begin, end in ranges:
        for at in range(begin, end, _SPAN):
            yield Span(at, min(end, at + _SPAN))
