"""The requested bytes of a file, and their progress.

Reads no disk: a `Sink` receives the bytes.
"""

from typing import Protocol
from urllib.parse import quote

from huai_client.transfer.http.verdict import RequestedRange, Verdict
from huai_schema.paths import RelPath


class Sink(Protocol):
    """The destination of bytes; an exception of it ends all requests in progress."""

    def begin(self, position: int) -> None:
        """Start after the first `position` bytes of the file; later ones are dropped."""

    def write(self, position: int, data: bytes) -> None:
        """Write `data` at its position in the file."""


class Job:
    """A range of one file: one request, and another for the rest after a broken connection."""

    def __init__(
        self, address: str, requested: RequestedRange, sink: Sink, position: int = 0
    ) -> None:
        """The bytes before `position` are here already."""
        self.address = address
        self.sink = sink
        self.position = max(position, requested.first)
        self.continues = False
        """True if the request continues a partial file."""
        self._requested = requested
        self._furthest = self.position
        self._breaks = 0
        self._end = requested.end

    @property
    def requested(self) -> RequestedRange:
        """The bytes that are still missing."""
        return self._requested._replace(first=self.position)

    @property
    def is_whole(self) -> bool:
        """True if all requested bytes have arrived."""
        return self.position == self._end

    def begin(self, verdict: Verdict) -> None:
        """Start the body of a response."""
        self.position = verdict.begins
        if self._requested.changes:
            self._end = self.position
        self.sink.begin(self.position)

    def write(self, data: bytes) -> None:
        """Write the next bytes of the body."""
        self.sink.write(self.position, data)
        self.position += len(data)
        if self._requested.changes:  # it ends where the body ends
            self._end = self.position

    def start_over(self) -> None:
        """Discard the received bytes."""
        self.position = self._requested.first

    def record_break(self) -> int:
        """Record a broken connection; return the number in a row without new bytes."""
        self._breaks = 0 if self.position > self._furthest else self._breaks + 1
        self._furthest = max(self._furthest, self.position)
        if not self._requested.proved:
            self.start_over()  # nothing would prove that both parts belong to one file
        return self._breaks


_SAFE = "!$&'()*+,;=:@/"
"""Besides letters, digits and `-._~`: characters that stay unescaped (RFC 3986, `pchar`)."""


def address_of(base: str, path: RelPath) -> str:
    """Return the URL of `path` below `base`, which ends with a slash."""
    return base + quote(path, safe=_SAFE)
