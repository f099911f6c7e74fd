"""A range of a large file from a mirror: written to its place, and proved there.

A range that another mirror sends as well is buffered in memory until it is proved: two writers of
one place would be blamed for each other's bytes.
"""

import os
from typing import NamedTuple

from huai_client.transfer.errors import WrongContentError
from huai_client.transfer.http.ranges import Span
from huai_client.transfer.large.shared_ranges import AssignedRange, SharedRanges
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


class Arriving:
    """A `Piece` of a large file.  Close it when done."""

    def __init__(
        self, new_file: NewFile, ranges: SharedRanges, assigned: AssignedRange, url: ContentUrl
    ) -> None:
        """`url` is the mirror that sends it."""
        self._new_file = new_file
        self._ranges = ranges
        self._assigned = assigned
        self._url = url
        self._aside = os.memfd_create("huai-range") if assigned.is_repeated else -1

    @property
    def span(self) -> Span:
        """The range in the file."""
        return self._assigned.span

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
        with self._ranges.writing(self._assigned) as counts:
            if counts:
                _write(self._new_file.handle, position, data)

    def complete(self) -> None:
        """Prove the range; raises `WrongBlockError`."""
        new_file, aside = self._new_file, self._aside
        place = new_file.handle if aside < 0 else aside
        wrong = new_file.blocks.wrong_ranges(place, [self.span], _THREADS)
        if wrong and aside >= 0:
            wrong = [self.span]  # nothing of it is kept
        counts = self._ranges.complete(self._assigned, [Span(*each) for each in wrong])
        if counts and not wrong and aside >= 0:
            _copy(aside, new_file.handle, self.span)
        self.close()
        if counts and wrong:
            raise WrongBlockError(
                f"{self._url}: {show(new_file.file.path)}: wrong content",
                hint="tell its administrator: the URL is not used for the rest of this run",
            )


def _write(handle: int, position: int, data: bytes) -> None:
    while data:
        written = os.pwrite(handle, data, position)
        position, data = position + written, data[written:]


def _copy(source: int, target: int, span: Span) -> None:
    for at in range(span.first, span.end, _COPIED):
        _write(target, at, os.pread(source, min(_COPIED, span.end - at), at))
