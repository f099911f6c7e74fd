"""Blocks of large files from web servers.

Each is proved by the index before it counts, so any mirror will do: what one does not have, or has
wrong, the next one is asked for.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple, Self, TypeAlias

from huai_client.transfer.errors import (
    NoRangesError,
    TransferError,
    UpstreamSilentError,
    WrongContentError,
)
from huai_client.transfer.http.connect import connections_to
from huai_client.transfer.http.connections import Connections
from huai_client.transfer.http.ranges import Span, fetch_ranges
from huai_client.transfer.limits import Admission, BusyBackoff, StallDetector
from huai_client.transfer.listener import Listener
from huai_client.transfer.options import TransferOptions
from huai_client.transfer.process_group import ProcessGroup
from huai_client.transfer.sources import Sources
from huai_client.transfer.tally import Tally
from huai_client.transfer.urls import ContentUrl, Transport
from huai_client.tree.hashing import WORKERS
from huai_native._native import BlockIndex
from huai_schema.entries import File
from huai_schema.paths import show

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""Begin and end of bytes of a file, in order."""

_SPAN = 16 << 20
"""Bytes of one request at most: several share the connections."""
_ROUND = 256 << 20
"""Bytes that are asked for before any of them is proved."""


class Making(NamedTuple):
    """A file that is being put together."""

    file: File
    blocks: BlockIndex
    handle: int


class Pieces:
    """Of all large files of one run."""

    def __init__(self, sources: Sources, options: TransferOptions, listener: Listener) -> None:
        """Nothing is asked yet."""
        self._sources = sources
        self._options = options
        self._tally = Tally(listener)
        self._processes = ProcessGroup(options.deadline)
        busy = BusyBackoff(options.patience, options.backoff)
        self._admission = Admission(options, 1, busy, self._tally, ())
        self._wholes: set[ContentUrl] = set()
        """Those that hand out whole files only."""
        self._stays = ExitStack()
        self._connections: dict[ContentUrl, Connections] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self._disconnect()

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
            whole = all(self._fetch_some(making, some) for some in _rounds(missing))
            if whole:
                self._tally.arrived([making.file], size)
        finally:
            self._tally.ended()
        return whole

    def _fetch_some(self, making: Making, missing: Ranges) -> bool:
        for url in self.urls():
            failure = self._ask(url, making, missing)
            left = making.blocks.wrong_ranges(making.handle, [*missing], WORKERS)
            if left and failure is None:
                path = show(making.file.path)
                failure = WrongContentError(f"{url}: {path}: holds something else")
                self._sources.failed(url, failure)
            if failure is not None:
                self._note(url, failure)
            else:
                self._sources.answered(url)
            missing = left
            if not missing:
                return True
        return False

    def _note(self, url: ContentUrl, failure: TransferError) -> None:
        """Say what was wrong.

        That a mirror has another version of a file says nothing of its other files; what else is
        wrong with it, the transfer of whole files finds out.
        """
        if isinstance(failure, NoRangesError):
            self._wholes.add(url)
        self._tally.retried(failure.message)

    def _ask(self, url: ContentUrl, making: Making, missing: Ranges) -> TransferError | None:
        stall = StallDetector(self._options.timeout)
        connections = self._connected(url)
        before = connections.received

        def watch(received: int) -> None:
            self._processes.begin()
            self._tally.in_flight(0, received - before)
            if stall.stalled(lambda: received):
                raise UpstreamSilentError(f"{url}: sends too slowly", hint="sync again")

        def write(position: int, data: bytes) -> None:
            while data:
                written = os.pwrite(making.handle, data, position)
                position, data = position + written, data[written:]

        failure = fetch_ranges(connections, url, making.file, _spans(missing), write, watch)
        self._tally.completed(0, connections.received - before)
        if failure is not None:
            self._disconnect()  # something may be in flight
        return failure

    def _connected(self, url: ContentUrl) -> Connections:
        """Connections to `url`, which stay for the next file."""
        if url not in self._connections:
            self._disconnect()  # what one was granted is granted to others, too
            grant = self._stays.enter_context(self._admission.admit(url, self._processes.pause))
            made = connections_to(url, self._options, grant)
            self._connections[url] = self._stays.enter_context(made)
        return self._connections[url]

    def _disconnect(self) -> None:
        self._stays.close()
        self._connections.clear()


def _rounds(ranges: Ranges) -> Iterator[Ranges]:
    """`ranges` by groups of about `_ROUND` bytes, in order; a larger one is cut."""
    some: list[tuple[int, int]] = []
    size = 0
    for begin, end in ranges:
        at = begin
        while at < end:
            step = min(end, at + _ROUND - size)
            some.append((at, step))
            size += step - at
            at = step
            if size == _ROUND:
                yield some
                some, size = [], 0
    if some:
        yield some


def _spans(ranges: Ranges) -> Iterator[Span]:
    for begin, end in ranges:
        for at in range(begin, end, _SPAN):
            yield Span(at, min(end, at + _SPAN))
