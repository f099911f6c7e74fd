"""One content URL as a source of ranges of large files, for a whole run.

Its connections stay from one file to the next.  It asks as long as there is a range for it, or may
be again; an answer that says "not now" (429, 503) is waited for, while the others go on.  Rule to
keep: whoever leaves gives back what it has taken, and nothing stays in flight.
"""

import time
from contextlib import ExitStack, closing
from functools import partial
from typing import NamedTuple

from huai_client.run.retry import Backoff, retry
from huai_client.transfer.errors import TransferError, UpstreamFullError, UpstreamSilentError
from huai_client.transfer.http.connect import connections_to
from huai_client.transfer.http.connections import Connections
from huai_client.transfer.http.ranges import fetch_ranges
from huai_client.transfer.large.arriving import Arriving, Making
from huai_client.transfer.large.shared_ranges import SharedRanges
from huai_client.transfer.limits import Admission, StallDetector
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.ranking import note_speed
from huai_client.transfer.rsync.process_group import ProcessGroup
from huai_client.transfer.tally import Tally
from huai_client.transfer.urls import ContentUrl

_TICK = 0.1
_BACKOFF = Backoff(retries=3, first=1.0, longest=30.0)
_LONGEST = 60.0
"""Seconds of a Retry-After that are waited for."""


class OvertakenError(TransferError):
    """Others were faster by far."""


class Terms(NamedTuple):
    """What all sources of a run have in common."""

    options: TransferOptions
    admission: Admission
    tally: Tally
    processes: ProcessGroup


class _LeaveError(Exception):
    """It is not needed any more; never leaves this module."""


class RangeSource:
    """Used by one thread at a time; to be closed."""

    def __init__(self, number: int, url: ContentUrl, terms: Terms) -> None:
        """Nothing is asked yet.  `number` tells it from the others."""
        self.url = url
        self._number = number
        self._terms = terms
        self._stack = ExitStack()
        self._connections: Connections | None = None
        self._most = 0
        """Ranges that are asked for at a time."""
        self._received = 0
        """Of this file."""

    def close(self) -> None:
        """Close all connections, whatever is in flight."""
        self._connections = None
        self._stack.close()

    def bring(self, making: Making, ranges: SharedRanges) -> TransferError | None:
        """Fetch of `ranges` what falls to this one; what made it leave before all was there.

        Raises `OutOfTimeError` at the deadline, `OSError` if the disk cannot take it.
        """
        self._received = 0
        ask, pause = partial(self._ask, making, ranges), partial(self._pause, ranges)
        try:
            failure = retry(ask, UpstreamFullError, _BACKOFF, pause)
        except UpstreamFullError as error:
            failure = error
        except _LeaveError:
            failure = None
            self.close()
        except BaseException:
            self.close()
            raise
        finally:
            ranges.give_back(self._number)
            self._terms.tally.completed(self._number, self._received)
        if failure is None and ranges.is_overtaken(self._number):
            self.close()
            failure = OvertakenError(
                f"{self.url}: slower than others by far",
                hint="it is asked for large files only if there is nobody else",
            )
        return failure

    def _ask(self, making: Making, ranges: SharedRanges) -> TransferError | None:
        """As `bring`; raises `UpstreamFullError` if asking again may help."""
        with ExitStack() as kept_aside:

            def take() -> Arriving | None:
                taken = ranges.take(self._number, self._most)
                if taken is None:
                    return None
                arriving = Arriving(making, ranges, taken, self.url)
                return kept_aside.enter_context(closing(arriving)) if taken.again else arriving

            while not ranges.over and not ranges.is_overtaken(self._number):
                connections = self._connected(ranges)
                before, stall = connections.received, StallDetector(self._terms.options.timeout)
                began = time.monotonic()
                watch = partial(self._watch, ranges, connections, (before, stall))
                try:
                    failure = fetch_ranges(connections, self.url, making.file, take, watch)
                finally:
                    came, took = connections.received - before, time.monotonic() - began
                    self._received += came
                    hosts, first_byte = self._terms.options.hosts, connections.first_byte
                    note_speed(self.url, hosts, came, took, first_byte)
                if failure is not None:
                    self._give_up(ranges, failure)
                    return failure
                ranges.wait(_TICK)
                self._terms.processes.begin()
        return None

    def _watch(
        self,
        ranges: SharedRanges,
        connections: Connections,
        since: tuple[int, StallDetector],
        received: int,
    ) -> None:
        before, stall = since
        self._terms.processes.begin()
        self._terms.tally.in_flight(self._number, self._received + received - before)
        if connections.busy and (ranges.over or ranges.is_overtaken(self._number)):
            raise _LeaveError
        if stall.stalled(lambda: received):
            raise UpstreamSilentError(f"{self.url}: sends too slowly", hint="sync again")

    def _give_up(self, ranges: SharedRanges, failure: TransferError) -> None:
        """Nothing comes for now; raises `failure` if it may later."""
        self.close()
        ranges.give_back(self._number)
        if isinstance(failure, UpstreamFullError):
            self._terms.options.hosts.fewer_requests(self.url.service)
            if failure.retry_after <= _LONGEST:
                raise failure

    def _connected(self, ranges: SharedRanges) -> Connections:
        if self._connections is None:
            options = self._terms.options
            admitting = self._terms.admission.admit(self.url, partial(self._pause, ranges))
            grant = self._stack.enter_context(admitting)
            made = self._stack.enter_context(connections_to(self.url, options, grant))
            self._most = min(grant.connections, options.hosts.requests(self.url.service))
            self._connections = made
        return self._connections

    def _pause(self, ranges: SharedRanges, seconds: float) -> None:
        """Wait so long, unless it is over before."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._terms.processes.begin()
            if ranges.over:
                raise _LeaveError
            ranges.wait(min(left, _TICK))
