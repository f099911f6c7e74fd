"""A range of a large file as a mirror brings it: written to its place, and proved there.

One that another mirror is asked for as well is kept aside, in memory, until it is proved: two
writers of one place would be blamed for each other's bytes.
"""

import os
from typing import NamedTuple

from huai_client.transfer.errors import WrongContentError
from huai_client.transfer.http.ranges import Span
from huai_client.transfer.large.shared_ranges import SharedRanges, Taken
from huai_client.transfer.urls import ContentUrl
from huai_native._native import BlockIndex
from huai_schema.entries import File
from huai_schema.paths import show

_THREADS = 1
"""That prove a range: the other mirrors have theirs."""
_COPIED = 1 << 20


class WrongBlockError(WrongContentError):
    """A block is not what the index says, whoever has the file."""


class Making(NamedTuple):
    """A file that is being put together."""

    file: File
    blocks: BlockIndex
    handle: int


class Arriving:
    """A `Piece`; to be closed."""

    def __init__(self, making: Making, ranges: SharedRanges, taken: Taken, url: ContentUrl) -> None:
        """`url` is asked for it."""
        self._making = making
        self._ranges = ranges
        self._taken = taken
        self._url = url
        self._aside = os.memfd_create("huai-range") if taken.again else -1

    @property
    def span(self) -> Span:
        """Which bytes."""
        return self._taken.span

    def close(self) -> None:
        """Let go of what was kept aside."""
        if self._aside >= 0:
            os.close(self._aside)
            self._aside = -1

    def write(self, position: int, data: bytes) -> None:
        """Put `data` in its place, as long as nobody else has brought it."""
        if self._aside >= 0:
            _write(self._aside, position, data)
            return
        with self._ranges.writing(self._taken) as counts:
            if counts:
                _write(self._making.handle, position, data)

    def came(self) -> None:
        """Prove it; raises `WrongBlockError`."""
        making, aside = self._making, self._aside
        place = making.handle if aside < 0 else aside
        wrong = making.blocks.wrong_ranges(place, [self.span], _THREADS)
        if wrong and aside >= 0:
            wrong = [self.span]  # nothing of it is kept
        counts = self._ranges.came(self._taken, [Span(*each) for each in wrong])
        if counts and not wrong and aside >= 0:
            _copy(aside, making.handle, self.span)
        self.close()
        if counts and wrong:
            raise WrongBlockError(
                f"{self._url}: {show(making.file.path)}: holds something else",
                hint="tell its administrator: it is left out for the rest of this run",
            )


def _write(handle: int, position: int, data: bytes) -> None:
    while data:
        written = os.pwrite(handle, data, position)
        position, data = position + written, data[written:]


def _copy(source: int, target: int, span: Span) -> None:
    for at in range(span.first, span.end, _COPIED):
        _write(target, at, os.pread(source, min(_COPIED, span.end - at), at))
