"""Blocks of large files from web servers, of several at once.

Each range is proved by the index as soon as it is here, so any mirror will do.  Rules to keep:

- Mirrors of the lowest priority number are asked at once, a few at a time; those of the next
  number for what is missing then.
- What sends a wrong block is left out for the rest of the run.  What breaks, or is overtaken, is
  asked for other files only if there is nobody else.
- That a mirror has another version of a file, or none, says nothing about its other files.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby
from typing import Self, TypeAlias

from huai_client.transfer.errors import NoRangesError, WrongContentError
from huai_client.transfer.http.ranges import Span
from huai_client.transfer.large.arriving import Making, WrongBlockError
from huai_client.transfer.large.range_source import RangeSource, Terms
from huai_client.transfer.large.shared_ranges import SharedRanges
from huai_client.transfer.limits import Admission, BusyBackoff
from huai_client.transfer.listener import Listener
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.rsync.process_group import ProcessGroup
from huai_client.transfer.sources import Sources
from huai_client.transfer.tally import Tally
from huai_client.transfer.urls import ContentUrl, Transport

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""Begin and end of bytes of a file, in order."""

_SPAN = 8 << 20
"""Bytes of one request at most."""
_MIRRORS = 4
"""At a time: each has several connections, and more would hardly be faster."""


class Pieces:
    """Of all large files of one run."""

    def __init__(self, sources: Sources, options: TransferOptions, listener: Listener) -> None:
        self._sources = sources
        self._tally = Tally(listener)
        self._wholes: set[ContentUrl] = set()
        """Those that hand out whole files only."""
        self._late: set[ContentUrl] = set()
        """Those that broke or were overtaken."""
        urls = self.urls()
        largest = max((len(tier) for tier in _tiers(urls)), default=1)
        self._width = min(_MIRRORS, largest)
        busy = BusyBackoff(options.patience, options.backoff)
        admission = Admission(options, self._width, busy, self._tally, range(self._width))
        terms = Terms(options, admission, self._tally, ProcessGroup(options.deadline))
        self._range_sources = {
            url: RangeSource(number, url, terms) for number, url in enumerate(urls)
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        for source in self._range_sources.values():
            source.close()

    @property
    def received(self) -> int:
        """Bytes over the wire, so far."""
        return self._tally.received

    def urls(self) -> list[ContentUrl]:
        """Those that may have pieces, in the order in which to ask."""
        usable = self._sources.usable()
        return [
            url for url in usable if url.transport is Transport.HTTP and url not in self._wholes
        ]

    def fetch(self, making: Making, missing: Ranges) -> bool:
        """Write `missing` into the file that is being made; whether all came, and is proved.

        Raises `OutOfTimeError` at the deadline, and `OSError` if the disk cannot take it.
        """
        size = sum(end - begin for begin, end in missing)
        self._tally.started(1, size)
        try:
            for urls in self._groups():
                missing = self._fetch_from(urls, making, missing)
                if not missing:
                    self._tally.arrived([making.file], size)
                    return True
            return False
        finally:
            self._tally.ended()

    def _groups(self) -> Iterator[list[ContentUrl]]:
        """Who is asked at the same time, one group after the other."""
        late = [url for url in self.urls() if url in self._late]
        for tier in _tiers(self.urls()):
            if found := [url for url in tier if url not in late]:
                yield found
        if late:
            yield late

    def _fetch_from(self, urls: Sequence[ContentUrl], making: Making, missing: Ranges) -> Ranges:
        """What none of `urls` brought."""
        for url in self._range_sources.keys() - urls[: self._width]:
            self._range_sources[url].close()  # what one was granted is granted to others, too
        ranges, queue = SharedRanges(_spans(missing)), deque(urls)

        def work() -> None:
            while not ranges.over:
                try:
                    url = queue.popleft()
                except IndexError:  # another thread had the last one
                    return
                self._ask(url, making, ranges)

        width = min(self._width, len(urls))
        with ThreadPoolExecutor(width, thread_name_prefix="huai-mirror") as pool:
            try:
                for part in as_completed([pool.submit(work) for _ in range(width)]):
                    part.result()
            except BaseException:
                ranges.end()
                raise
        return ranges.left()

    def _ask(self, url: ContentUrl, making: Making, ranges: SharedRanges) -> None:
        """Ask `url`, and remember what was wrong with it."""
        failure = self._range_sources[url].bring(making, ranges)
        if failure is None:
            self._sources.answered(url)
            return
        self._tally.retried(failure.message)
        if isinstance(failure, WrongBlockError):
            self._sources.failed(url, failure)
        elif isinstance(failure, NoRangesError):
            self._wholes.add(url)
        elif not isinstance(failure, WrongContentError):
            # What else is wrong with it, the transfer of whole files finds out.
            self._late.add(url)


def _tiers(urls: Sequence[ContentUrl]) -> Iterator[list[ContentUrl]]:
    """Those of one priority, the lowest number first."""
    ordered = sorted(urls, key=lambda url: url.priority)
    for _, tier in groupby(ordered, key=lambda url: url.priority):
        yield list(tier)


def _spans(ranges: Ranges) -> Iterator[Span]:
    for begin, end in ranges:
        for at in range(begin, end, _SPAN):
            yield Span(at, min(end, at + _SPAN))
