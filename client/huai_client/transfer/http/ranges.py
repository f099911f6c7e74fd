"""Pieces of one file from one URL, several at a time.

For whoever knows which bytes of a large file it lacks, and can prove each piece by itself.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from huai_client.transfer.errors import (
    ConnectionBrokenError,
    NoRangesError,
    TransferError,
    UpstreamRefusedError,
    WrongContentError,
)
from huai_client.transfer.http.address import address_of
from huai_client.transfer.http.answer import Answer, Asked, Meaning
from huai_client.transfer.http.connections import Connections
from huai_client.transfer.http.job import Job
from huai_client.transfer.urls import ContentUrl
from huai_schema.entries import File
from huai_schema.paths import show


class Span(NamedTuple):
    """Bytes of a file."""

    first: int
    end: int
    """The place behind the last."""


class Piece(Protocol):
    """A span that is wanted, and where its bytes go."""

    @property
    def span(self) -> Span:
        """Which bytes."""

    def write(self, position: int, data: bytes) -> None:
        """Take what belongs at `position` of the file."""

    def came(self) -> None:
        """All bytes were written."""


def fetch_ranges(
    connections: Connections,
    url: ContentUrl,
    file: File,
    take: Callable[[], Piece | None],
    watch: Callable[[int], None],
) -> TransferError | None:
    """Ask `url` for pieces of `file` until `take` has none; returns what ended it early.

    `take` is asked whenever there is room for one more, and may have one again later, as long as
    any is on its way.  A piece is handed its bytes in their order, several by turns; they are not
    proved, and none is handed on that was not asked for.  `watch` is told every tick how many bytes
    have come.  What the two or a piece raise ends everything; a `TransferError` is returned.
    A `NoRangesError` says that whole files alone are to be had there, a `WrongContentError` that
    there is another file by this name, or none.
    """
    try:
        return connections.run(_Pieces(url, file, take), watch)
    except TransferError as error:
        return error


class _Pieces:
    """A `Work`."""

    def __init__(self, url: ContentUrl, file: File, take: Callable[[], Piece | None]) -> None:
        self._url = url
        self._file = file
        self._address = address_of(url.source, file.path)
        self._take = take
        self._asked: dict[Job, Piece] = {}

    def take(self) -> Job | None:
        piece = self._take()
        if piece is None:
            return None
        first, end = piece.span
        job = Job(self._address, Asked(first, end, self._file.size, from_start=False), _Sink(piece))
        self._asked[job] = piece
        return job

    def done(self, job: Job, answer: Answer) -> None:
        piece, meaning = self._asked.pop(job), answer.meaning
        if meaning is Meaning.TAKE:
            piece.came()
            return
        said = f"{self._url}: {show(self._file.path)}: {answer.reason}"
        if meaning is Meaning.NO_RANGES:
            raise NoRangesError(said, hint="another content URL, or rsync, has pieces of files")
        if meaning in (Meaning.DENIED, Meaning.LOGIN):
            raise UpstreamRefusedError(said, hint="check the content URL and its access rules")
        if meaning is Meaning.FAILING:
            raise ConnectionBrokenError(said, hint="sync again: files that have arrived are kept")
        raise WrongContentError(said, hint="another content URL may have it")


class _Sink:
    """Hands on what comes."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece

    def begin(self, position: int) -> None:
        """Nothing is made ready."""

    def write(self, position: int, data: bytes) -> None:
        self._piece.write(position, data)
