"""Pieces of one file from one URL, several at a time.

For whoever knows which bytes of a large file it lacks, and can prove each piece by itself.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

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


def fetch_ranges(
    connections: Connections,
    url: ContentUrl,
    file: File,
    spans: Iterable[Span],
    write: Callable[[int, bytes], None],
    watch: Callable[[int], None],
) -> TransferError | None:
    """Ask `url` for `spans` of `file`; returns what ended it early, None if all came.

    `write` is handed the bytes of each span in their order, those of several spans by turns, each
    with its place in the file; they are not proved.  It is never handed a byte that was not asked
    for.  `watch` is told every tick how many bytes have come; what either raises ends everything.
    A `NoRangesError` says that whole files alone are to be had there, a `WrongContentError` that
    there is another file by this name, or none.
    """
    try:
        return connections.run(_Pieces(url, file, spans, write), watch)
    except TransferError as error:
        return error


class _Pieces:
    """A `Work`."""

    def __init__(
        self,
        url: ContentUrl,
        file: File,
        spans: Iterable[Span],
        write: Callable[[int, bytes], None],
    ) -> None:
        self._url = url
        self._path = file.path
        address = address_of(url.source, file.path)
        self._jobs = deque(
            Job(address, Asked(span.first, span.end, file.size, from_start=False), _Sink(write))
            for span in spans
        )

    def take(self) -> Job | None:
        return self._jobs.popleft() if self._jobs else None

    def done(self, _job: Job, answer: Answer) -> None:
        meaning = answer.meaning
        if meaning is Meaning.TAKE:
            return
        said = f"{self._url}: {show(self._path)}: {answer.reason}"
        if meaning is Meaning.NO_RANGES:
            raise NoRangesError(said, hint="another content URL, or rsync, has pieces of files")
        if meaning in (Meaning.DENIED, Meaning.LOGIN):
            raise UpstreamRefusedError(said, hint="check the content URL and its access rules")
        if meaning is Meaning.FAILING:
            raise ConnectionBrokenError(said, hint="sync again: files that have arrived are kept")
        raise WrongContentError(said, hint="another content URL may have it")


class _Sink:
    """Hands on what comes."""

    def __init__(self, write: Callable[[int, bytes], None]) -> None:
        self._write = write

    def begin(self, position: int) -> None:
        """Nothing is made ready."""

    def write(self, position: int, data: bytes) -> None:
        self._write(position, data)
