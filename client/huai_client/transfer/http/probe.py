"""Tests a content URL of HTTP by a request for the folder itself, and measures web servers.

A server that shows no folders may have the files in them: any response is good except those about
logins, and the server's own failures.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from huai_client.run.options import Deadline
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    OutOfTimeError,
    TransferError,
    UpstreamRefusedError,
    UpstreamSilentError,
)
from huai_client.transfer.http.connections import connections_to
from huai_client.transfer.http.job import Job, Sink
from huai_client.transfer.http.login import LOGIN_HINT
from huai_client.transfer.http.ranges import Piece, Span, fetch_ranges
from huai_client.transfer.http.verdict import Meaning, RequestedRange, Verdict
from huai_client.transfer.limits import Grant
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.sources import note_speed
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File

_FIRST_BYTE = RequestedRange(0, 1, 1, proved=False, changes=True)


def probe_http(url: ContentUrl, options: TransferOptions) -> TransferError | None:
    """Return the error of `url`, or None if it responds.  Takes one timeout at most."""
    until = Deadline.after(options.timeout)

    def watch(_: int) -> None:
        if until.over:
            raise OutOfTimeError

    with connections_to(url, options, Grant((), 0)) as connections:
        try:
            return connections.run(_ProbeWork(url), watch)
        except TransferError as error:
            return error
        except OutOfTimeError:
            return UpstreamSilentError(f"{url}: no response in time", hint="try again later")


class _ProbeWork:
    """A `Work` of one job, whose data are discarded."""

    def __init__(self, url: ContentUrl) -> None:
        self._url = url
        self._started = False

    def next_job(self) -> Job | None:
        """Return the one request; None once it was made."""
        if self._started:
            return None
        self._started = True
        return Job(self._url.source, _FIRST_BYTE, Sink())

    def end_job(self, _: Job, verdict: Verdict) -> None:
        """Raise an error if the server wants a login or fails."""
        message = f"{self._url}: {verdict.reason}"
        if verdict.meaning is Meaning.LOGIN:
            raise UpstreamRefusedError(message, hint=LOGIN_HINT)
        if verdict.meaning is Meaning.FAILING:
            raise ConnectionBrokenError(message, hint="tell the server's administrator")


_BYTES = 256 << 10
_SECONDS = 5.0


class Measured(NamedTuple):
    """The result of a sample."""

    failure: TransferError | None
    size: int
    """Bytes received."""
    seconds: float
    first_byte: float
    """Seconds; if nothing arrived, those that were waited."""


def sample(urls: Sequence[ContentUrl], file: File, options: TransferOptions) -> None:
    """Request the beginning of `file` from each of `urls`, all of HTTP, and record the speeds."""
    with ThreadPoolExecutor(len(urls), thread_name_prefix="huai-sample") as pool:
        futures = [pool.submit(measure, url, file, options) for url in urls]
        for url, future in zip(urls, futures, strict=True):
            _, size, seconds, first_byte = future.result()
            note_speed(url, options.hosts, size, seconds, first_byte)


def measure(url: ContentUrl, file: File, options: TransferOptions) -> Measured:
    """Measure a request for at most 256 KiB of `file`, 5 seconds at most.

    A timeout is not a `failure`.
    """
    until = Deadline.after(min(_SECONDS, options.deadline.left))

    def watch(_: int) -> None:
        if until.over:
            raise OutOfTimeError

    pieces = iter([Piece(Span(0, min(file.size, _BYTES)))])
    with connections_to(url, options, Grant((), 0)) as connections:
        began, failure = time.monotonic(), None
        with suppress(OutOfTimeError):
            failure = fetch_ranges(connections, url, file, lambda: next(pieces, None), watch)
        took = time.monotonic() - began
        # A server that has sent nothing will send its first byte later than this.
        return Measured(
            failure, connections.traffic.received, took, connections.traffic.first_byte or took
        )
