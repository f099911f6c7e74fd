"""Adds up what the streams report and tells the listener, one call at a time."""

import threading
from collections.abc import Sequence
from typing import NamedTuple

from huai_client.diff.files import sizes
from huai_client.staging import Arrival
from huai_client.transfer.listener import Listener
from huai_schema.entries import File


class Amount(NamedTuple):
    """Content that arrived, verified or not."""

    size: int
    files: int


_NOTHING = Amount(0, 0)


class Tally:
    """The figures of one `fetch`."""

    def __init__(self, listener: Listener) -> None:
        self.received = 0
        """Bytes over the wire, as far as rsync ended well enough to tell."""
        self._listener = listener
        self._lock = threading.Lock()
        self._done = _NOTHING
        self._in_flight: dict[int, Amount] = {}
        self._told = _NOTHING
        self._waits: set[str] = set()

    def started(self, files: int, size: int) -> None:
        """The transfer begins."""
        with self._lock:
            self._listener.started(files, size)

    def in_flight(self, stream: int, size: int, files: int = 0) -> None:
        """`stream` has received `size` bytes of its batch, and `files` of it to their ends."""
        with self._lock:
            self._in_flight[stream] = Amount(size, files)
            self._progressed()

    def completed(self, stream: int, received: int) -> None:
        """`stream`'s rsync has ended; what counts from now on are verdicts."""
        with self._lock:
            self.received += received
            self._in_flight.pop(stream, None)

    def arrived(self, files: Sequence[File], size: int | None = None) -> None:
        """`files` are verified; `size`: the bytes of them that had to come (None: all)."""
        with self._lock:
            came = sum(sizes(files)) if size is None else size
            self._done = Amount(self._done.size + came, self._done.files + len(files))
            self._progressed()
            self._listener.finished(files)

    def given_up(self, file: File, verdict: Arrival) -> None:
        """`file` will not come."""
        with self._lock:
            self._done = self._done._replace(size=self._done.size + file.size)
            self._progressed()
            self._listener.refused(file, verdict)

    def retried(self, reason: str) -> None:
        """An attempt failed."""
        with self._lock:
            self._listener.retried(reason)

    def waiting(self, reason: str) -> None:
        """A stream waits; said once for each reason, however often it asks again."""
        with self._lock:
            if reason not in self._waits:
                self._waits.add(reason)
                self._listener.waiting(reason)

    def ended(self) -> None:
        """The transfer is over."""
        with self._lock:
            self._listener.ended()

    def _progressed(self) -> None:
        parts = (self._done, *self._in_flight.values())
        size, files = (sum(amounts) for amounts in zip(*parts, strict=True))
        # An attempt that failed takes nothing back.
        now = Amount(max(size, self._told.size), max(files, self._told.files))
        if now != self._told:
            self._told = now
            self._listener.progressed(*now)
