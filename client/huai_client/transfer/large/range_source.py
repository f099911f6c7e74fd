"""One content URL as a source of ranges of large files, for a whole run.

Its connections are kept from one file to the next.  It continues as long as there is a range for
it, or may be again; after a "not now" (429, 503) it waits, while the others continue.  Rule: a
source that stops returns its ranges, and leaves nothing in progress.  A range that another mirror
sends as well is buffered in memory until it is proved: two writers of one place would be blamed for
each other's bytes.
"""

import os
import time
from contextlib import ExitStack, closing
from functools import partial
from typing import NamedTuple

from huai_client.run.retry import Backoff, retry
from huai_client.transfer.errors import (
    TransferError,
    UpstreamFullError,
    UpstreamSilentError,
    WrongContentError,
)
from huai_client.transfer.http.connections import Connections, connections_to
from huai_client.transfer.http.ranges import Piece, Span, fetch_ranges
from huai_client.transfer.large.shared_ranges import AssignedRange, SharedRanges
from huai_client.transfer.limits import Admission, StallDetector
from huai_client.transfer.listener import Tally
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.rsync.run import ProcessGroup
from huai_client.transfer.sources import note_speed
from huai_client.transfer.urls import ContentUrl
from huai_native._native import BlockIndex
from huai_schema.entries import File
from huai_schema.paths import show

_THREADS = 1
"""Threads that prove a range: the other mirrors have their own."""
_COPIED = 1 << 20


class WrongBlockError(WrongContentError):
    """A block that differs from the index, on any server."""


class NewFile(NamedTuple):
    """A large file that is being made."""

    file: File
    blocks: BlockIndex
    handle: int


class Arriving(Piece):
    """The destination of one range of a large file.

    A range that another mirror sends too is buffered in memory: close it when done.
    """

    def __init__(
        self, new_file: NewFile, ranges: SharedRanges, assigned: AssignedRange, url: ContentUrl
    ) -> None:
        """Request nothing; `url` is the mirror that will send it, named in errors."""
        super().__init__(assigned.span)
        self._new_file = new_file
        self._ranges = ranges
        self._assigned = assigned
        self._url = url
        self._aside = os.memfd_create("huai-range") if assigned.is_repeated else -1

    def close(self) -> None:
        """Free the buffer."""
        if self._aside >= 0:
            os.close(self._aside)
            self._aside = -1

    def write(self, position: int, data: bytes) -> None:
        """Write `data` at `position`, unless another mirror has sent the range."""
        if self._aside >= 0:
            _write(self._aside, position, data)
            return
        with self._ranges.may_write(self._assigned) as counts:
            if counts:
                _write(self._new_file.handle, position, data)

    def complete(self) -> None:
        """Verify the received range by its blocks, record it, and close; wrong ones are missing.

        Raises `WrongBlockError` if a block is wrong, and no other mirror had sent the range.
        """
        new_file, aside = self._new_file, self._aside
        handle = new_file.handle if aside < 0 else aside
        wrong = new_file.blocks.wrong_ranges(handle, [self.span], _THREADS)
        if wrong and aside >= 0:
            wrong = [self.span]  # nothing of it is kept
        counts = self._ranges.complete(self._assigned, [Span(*each) for each in wrong])
        if counts and not wrong and aside >= 0:
            _copy(aside, new_file.handle, self.span)
        self.close()
        if counts and wrong:
            raise WrongBlockError(
                f"{self._url}: {show(new_file.file.path)}: wrong content",
                hint="tell the server's administrator: this run uses the URL no longer",
            )


def _write(handle: int, position: int, data: bytes) -> None:
    while data:
        written = os.pwrite(handle, data, position)
        position, data = position + written, data[written:]


def _copy(source: int, target: int, span: Span) -> None:
    for at in range(span.first, span.end, _COPIED):
        _write(target, at, os.pread(source, min(_COPIED, span.end - at), at))


_TICK = 0.1
_BACKOFF = Backoff(retries=3, first=1.0, longest=30.0)
_LONGEST = 60.0
"""Longest Retry-After that is waited for, in seconds."""


class Terms(NamedTuple):
    """The settings that all sources of a run share."""

    options: TransferOptions
    admission: Admission
    tally: Tally
    processes: ProcessGroup


class _LeaveError(Exception):
    """The source is not needed any more; never leaves this module."""


class RangeSource:
    """A source of ranges, used by one thread at a time.  Close it when done."""

    def __init__(self, number: int, url: ContentUrl, terms: Terms) -> None:
        """`number` identifies the source among the others."""
        self.url = url
        self._number = number
        self._terms = terms
        self._stack = ExitStack()
        self._connections: Connections | None = None
        self._most = 0
        """Concurrent ranges at most."""
        self._received = 0
        """Bytes of the current file."""

    def close(self) -> None:
        """Close all connections, and abort what is in progress; the next `fetch` connects again."""
        self._connections = None
        self._stack.close()

    def fetch(self, new_file: NewFile, ranges: SharedRanges) -> TransferError | None:
        """Fetch some of `ranges`, until none is left for it; return an early failure, or None.

        Waits if the server is full.  Other mirrors that are much faster count as a failure.  What
        it did not complete is left to the others.  Raises `OutOfTimeError` at the deadline,
        `OSError` if the disk cannot take it.
        """
        self._received = 0
        attempt, pause = partial(self._fetch_once, new_file, ranges), partial(self._pause, ranges)
        try:
            failure = retry(attempt, UpstreamFullError, _BACKOFF, pause)
        except UpstreamFullError as error:
            failure = error
        except _LeaveError:
            failure = None
            self.close()
        except BaseException:
            self.close()
            raise
        finally:
            ranges.return_ranges(self._number)
            self._terms.tally.completed(self._number, self._received)
        if failure is None and ranges.is_overtaken(self._number):
            self.close()
            failure = TransferError(
                f"{self.url}: much slower than the other URLs",
                hint="it is used for large files as a last resort",
            )
        return failure

    def _fetch_once(self, new_file: NewFile, ranges: SharedRanges) -> TransferError | None:
        """Fetch ranges until none are left; return the error that ends this source.

        Notes the speed.  Raises `UpstreamFullError` if a retry may help.
        """
        with ExitStack() as kept_aside:

            def next_piece() -> Arriving | None:
                """Return a piece to fetch; None if none is left."""
                assigned = ranges.assign(self._number, self._most)
                if assigned is None:
                    return None
                piece = Arriving(new_file, ranges, assigned, self.url)
                return kept_aside.enter_context(closing(piece)) if assigned.is_repeated else piece

            while not ranges.over and not ranges.is_overtaken(self._number):
                connections = self._connect(ranges)
                before, stall = (
                    connections.traffic.received,
                    StallDetector(self._terms.options.timeout),
                )
                began = time.monotonic()
                watch = partial(self._watch, ranges, connections, (before, stall))
                try:
                    failure = fetch_ranges(connections, self.url, new_file.file, next_piece, watch)
                finally:
                    received, took = connections.traffic.received - before, time.monotonic() - began
                    self._received += received
                    hosts, first_byte = self._terms.options.hosts, connections.traffic.first_byte
                    note_speed(self.url, hosts, received, took, first_byte)
                if failure is not None:
                    self._give_up(ranges, failure)
                    return failure
                ranges.wait(_TICK)
                self._terms.processes.check_time()
        return None

    def _watch(
        self,
        ranges: SharedRanges,
        connections: Connections,
        since: tuple[int, StallDetector],
        received: int,
    ) -> None:
        """Report the progress; raise if the source is not needed any more, or silent.

        `received` counts all bytes of `connections`; `since` has the count at the beginning.
        """
        before, stall = since
        self._terms.processes.check_time()
        self._terms.tally.in_flight(self._number, self._received + received - before)
        if connections.busy and (ranges.over or ranges.is_overtaken(self._number)):
            raise _LeaveError
        if stall.stalled(lambda: received):
            raise UpstreamSilentError(f"{self.url}: sends too slowly", hint="sync again")

    def _give_up(self, ranges: SharedRanges, failure: TransferError) -> None:
        """Close the connections, and return the ranges; raise `failure` if a retry may succeed."""
        self.close()
        ranges.return_ranges(self._number)
        if isinstance(failure, UpstreamFullError):
            self._terms.options.hosts.fewer_requests(self.url.service)
            if failure.retry_after <= _LONGEST:
                raise failure

    def _connect(self, ranges: SharedRanges) -> Connections:
        """Return the connections of this run, after waiting for admission the first time."""
        if self._connections is None:
            options = self._terms.options
            admitting = self._terms.admission.admit(self.url, partial(self._pause, ranges))
            grant = self._stack.enter_context(admitting)
            connections = self._stack.enter_context(connections_to(self.url, options, grant))
            self._most = min(grant.connections, options.hosts.requests(self.url.service))
            self._connections = connections
        return self._connections

    def _pause(self, ranges: SharedRanges, seconds: float) -> None:
        """Sleep for a number of seconds; raises `_LeaveError` if the transfer ends before."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._terms.processes.check_time()
            if ranges.over:
                raise _LeaveError
            ranges.wait(min(left, _TICK))
