"""The interface through which a transfer reports its progress, and its totals.

Calls come one at a time, from any thread, and must return soon.
"""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from huai_client.diff.files import sizes
from huai_client.staging import Arrival
from huai_schema.entries import File


class Listener:
    """Receives the events of one `fetch`, from `started` to `ended`; this one ignores them."""

    def phase(self, _name: str) -> AbstractContextManager[object]:
        """Return a context manager for a part of the run before or after `fetch`."""
        return nullcontext()

    def started(self, files: int, size: int) -> None:
        """Begin a transfer of `files` files of `size` bytes in all."""

    def progressed(self, size: int, files: int) -> None:
        """Report the sums so far: `size` bytes of all files, and `files` whole ones."""

    def finished(self, files: Sequence[File]) -> None:
        """Report files that are verified and ready."""

    def refused(self, file: File, verdict: Arrival) -> None:
        """Report a file that is missing upstream, or does not match its metadata."""

    def retried(self, reason: str) -> None:
        """Report why work is repeated: a failed attempt, or a full disk.

        Not called for each attempt: failures that the end of the transfer reports are left out.
        """

    def waiting(self, reason: str) -> None:
        """Report a stream that waits, because the upstream is full."""

    def ended(self) -> None:
        """End the transfer, with or without success."""


class Amount(NamedTuple):
    """Content that arrived, verified or not."""

    size: int
    files: int


_NOTHING = Amount(0, 0)


class Tally:
    """The totals of one `fetch`, reported to a listener.  Thread-safe."""

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
        """Begin the transfer, or the next one: only `received` is the sum of all."""
        with self._lock:
            self._done = self._reported = _NOTHING
            self._listener.started(files, size)

    def in_flight(self, stream: int, size: int, files: int = 0) -> None:
        """Record what `stream` received of its batch so far: `size` bytes, `files` whole files."""
        with self._lock:
            self._in_flight[stream] = Amount(size, files)
            self._report_progress()

    def completed(self, stream: int, received: int) -> None:
        """Record the end of `stream`'s run and its bytes; from now on verdicts count."""
        with self._lock:
            self.received += received
            self._in_flight.pop(stream, None)

    def arrived(
        self, files: Sequence[File], size: int | None = None, stream: int | None = None
    ) -> None:
        """Record verified files; `size`: their transferred bytes, if not all.

        `stream`: the stream that still has them in flight, if its batch has not ended.
        """
        with self._lock:
            transferred = sum(sizes(files)) if size is None else size
            if stream is not None and (flying := self._in_flight.get(stream)):
                rest = max(0, flying.size - transferred)
                self._in_flight[stream] = flying._replace(size=rest)
            self._done = Amount(self._done.size + transferred, self._done.files + len(files))
            self._report_progress()
            self._listener.finished(files)

    def given_up(self, file: File, verdict: Arrival) -> None:
        """Record a file that will not arrive; its size counts as done."""
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
        """Report bytes and files so far, if they grew."""
        parts = (self._done, *self._in_flight.values())
        size, files = (sum(amounts) for amounts in zip(*parts, strict=True))
        # A failed attempt never lowers the progress.
        now = Amount(max(size, self._reported.size), max(files, self._reported.files))
        if now != self._reported:
            self._reported = now
            self._listener.progressed(*now)
