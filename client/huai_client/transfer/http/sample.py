"""Measures the speed of web servers by the beginning of a file, as a range of it.

The data are counted and discarded.  A sample ends after a few seconds.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from huai_client.run.deadline import Deadline
from huai_client.transfer.errors import OutOfTimeError, TransferError
from huai_client.transfer.http.connect import connections_to
from huai_client.transfer.http.ranges import Span, fetch_ranges
from huai_client.transfer.limits import Grant
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.ranking import note_speed
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File

_BYTES = 256 << 10
_SECONDS = 5.0


class Measured(NamedTuple):
    """The result of a sample."""

    failure: TransferError | None
    size: int
    """Bytes received."""
    seconds: float
    first_byte: float
    """Seconds."""


def sample(urls: Sequence[ContentUrl], file: File, options: TransferOptions) -> None:
    """Request the beginning of `file` from each of `urls`, all of HTTP, and record the speeds."""
    with ThreadPoolExecutor(len(urls), thread_name_prefix="huai-sample") as pool:
        futures = [pool.submit(measure, url, file, options) for url in urls]
        for url, future in zip(urls, futures, strict=True):
            _, size, seconds, first_byte = future.result()
            note_speed(url, options.hosts, size, seconds, first_byte)


def measure(url: ContentUrl, file: File, options: TransferOptions) -> Measured:
    """Request the beginning of `file` from `url`, of HTTP; silence just counts as slow."""
    until = Deadline.after(min(_SECONDS, options.deadline.left))

    def watch(_: int) -> None:
        if until.over:
            raise OutOfTimeError

    pieces = iter([_DiscardedPiece(Span(0, min(file.size, _BYTES)))])
    with connections_to(url, options, Grant((), 0)) as connections:
        began, failure = time.monotonic(), None
        with suppress(OutOfTimeError):
            failure = fetch_ranges(connections, url, file, lambda: next(pieces, None), watch)
        took = time.monotonic() - began
        # A server that has sent nothing will send its first byte later than this.
        return Measured(failure, connections.received, took, connections.first_byte or took)


class _DiscardedPiece:
    """A `Piece` that discards the data."""

    def __init__(self, span: Span) -> None:
        self.span = span

    def write(self, position: int, data: bytes) -> None:
        """Discard `data`."""

    def complete(self) -> None:
        """Do nothing."""
