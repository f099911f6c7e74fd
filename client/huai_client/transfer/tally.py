"""Adds up the reports of the streams for the listener, one call at a time."""

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
    """The totals of one `fetch`."""

    def __init__(self, listener: Listener) -> None:
        self.received = 0
        """Bytes over the wire, as far as rsync reported them."""
        self._listener = listener
        self._lock = threading.Lock()
        self._done = _NOTHING
        self._in_flight: dict[int, Amount] = {}
        self._reported = _NOTHING
        self._waits: set[str] = set()

    def started(self, files: int, size: int) -> None:
        """Begin the transfer."""
        with self._lock:
            self._listener.started(files, size)

    def in_flight(self, stream: int, size: int, files: int = 0) -> None:
        """Record that `stream` received `size` bytes of its batch, and `files` complete files."""
        with self._lock:
            self._in_flight[stream] = Amount(size, files)
            self._report_progress()

    def completed(self, stream: int, received: int) -> None:
        """Record the end of `stream`'s rsync; from now on verdicts count."""
        with self._lock:
            self.received += received
            self._in_flight.pop(stream, None)

    def arrived(self, files: Sequence[File], size: int | None = None) -> None:
        """Record verified files; `size`: their transferred bytes, if not all."""
        with self._lock:
            transferred = sum(sizes(files)) if size is None else size
            self._done = Amount(self._done.size + transferred, self._done.files + len(files))
            self._report_progress()
            self._listener.finished(files)

    def given_up(self, file: File, verdict: Arrival) -> None:
        """Record a file that will not arrive."""
        with self._lock:
            self._done = self._done._replace(size=self._done.size + file.size)
            self._report_progress()
            self._listener.refused(file, verdict)

    def retried(self, reason: str) -> None:
        """Report a failed attempt."""
        with self._lock:
            self._listener.retried(reason)

    def waiting(self, reason: str) -> None:
        """Report a stream that waits; once for each reason."""
        with self._lock:
            if reason not in self._waits:
                self._waits.add(reason)
                self._listener.waiting(reason)

    def ended(self) -> None:
        """End the transfer."""
        with self._lock:
            self._listener.ended()

    def _report_progress(self) -> None:
        parts = (self._done, *self._in_flight.values())
        size, files = (sum(amounts) for amounts in zip(*parts, strict=True))
        # A failed attempt never lowers the progress.
        now = Amount(max(size, self._reported.size), max(files, self._reported.files))
        if now != self._reported:
            self._reported = now
            self._listener.progressed(*now)
