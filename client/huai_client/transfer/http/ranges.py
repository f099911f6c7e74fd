"""Pieces of one file from one URL, several at a time.

For callers that know the missing ranges of a large file, and can prove each piece separately.
"""

from collections.abc import Callable
from typing import NamedTuple

from huai_client.transfer.errors import (
    RETRY_HINT,
    ConnectionBrokenError,
    NoRangesError,
    TransferError,
    UpstreamRefusedError,
    WrongContentError,
)
from huai_client.transfer.http.connections import Connections
from huai_client.transfer.http.job import Job, Sink, address_of
from huai_client.transfer.http.verdict import Meaning, RequestedRange, Verdict
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File
from huai_schema.paths import show


class Span(NamedTuple):
    """A range of bytes of a file."""

    first: int
    end: int
    """The position after the last byte."""


class Piece(Sink):
    """A requested range, and the destination of its bytes, which are discarded here."""

    def __init__(self, span: Span) -> None:
        self.span = span

    def complete(self) -> None:
        """Finish the piece: all bytes were written."""


def fetch_ranges(
    connections: Connections,
    url: ContentUrl,
    file: File,
    next_piece: Callable[[], Piece | None],
    watch: Callable[[int], None],
) -> TransferError | None:
    """Request pieces of `file` from `url` until `next_piece` has none; return an error or None.

    `next_piece` is called whenever there is room for one more, and may return one again later, as
    long as any is in progress.  A piece receives its bytes in order, several pieces by turns; they
    are not proved, and none is passed on that was not requested.  `watch` is called every tick with
    the number of bytes received.  An exception of the two functions or of a piece ends the run; a
    `TransferError` is returned.  It is `NoRangesError` if the server sends whole files only, and
    `WrongContentError` if it has another file by this name, or none.
    """
    try:
        return connections.run(_Pieces(url, file, next_piece), watch)
    except TransferError as error:
        return error


class _Pieces:
    """A `Work` of the pieces of one file."""

    def __init__(self, url: ContentUrl, file: File, next_piece: Callable[[], Piece | None]) -> None:
        self._url = url
        self._file = file
        self._address = address_of(url.source, file.path)
        self._next_piece = next_piece
        self._pieces: dict[Job, Piece] = {}

    def next_job(self) -> Job | None:
        """Return a request for the next piece; None after the last."""
        piece = self._next_piece()
        if piece is None:
            return None
        first, end = piece.span
        requested = RequestedRange(first, end, self._file.size, from_start=False)
        job = Job(self._address, requested, piece)
        self._pieces[job] = piece
        return job

    def end_job(self, job: Job, verdict: Verdict) -> None:
        """Complete the piece of `job`; raise a `TransferError` if the response does not fit."""
        piece, meaning = self._pieces.pop(job), verdict.meaning
        if meaning is Meaning.TAKE:
            piece.complete()
            return
        message = f"{self._url}: {show(self._file.path)}: {verdict.reason}"
        if meaning is Meaning.NO_RANGES:
            raise NoRangesError(message, hint="another content URL, or rsync, has pieces of files")
        if meaning in (Meaning.DENIED, Meaning.LOGIN):
            raise UpstreamRefusedError(message, hint="check the content URL and its access rules")
        if meaning is Meaning.FAILING:
            raise ConnectionBrokenError(message, hint=RETRY_HINT)
        raise WrongContentError(message, hint="another content URL may have it")
