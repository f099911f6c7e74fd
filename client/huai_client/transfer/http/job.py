"""The bytes of a file that are asked for, and how far they have come.

Reads no disk: `Sink` takes what comes.
"""

from typing import Protocol

from huai_client.transfer.http.answer import Answer, Asked


class Sink(Protocol):
    """Where bytes go; what it raises ends everything that is in flight."""

    def begin(self, position: int) -> None:
        """What comes now follows the first `position` bytes of the file; what was behind goes."""

    def write(self, position: int, data: bytes) -> None:
        """Put `data` at its place in the file."""


class Job:
    """Some bytes of one file; asked for in one request, and again for the rest if that breaks."""

    def __init__(self, address: str, asked: Asked, sink: Sink, position: int = 0) -> None:
        """What is before `position` is here already."""
        self.address = address
        self.sink = sink
        self.position = max(position, asked.first)
        self.continues = False
        """Whether it was asked for what follows a beginning that is here."""
        self._asked = asked
        self._furthest = self.position
        self._breaks = 0
        self._end = asked.end

    @property
    def asked(self) -> Asked:
        """The bytes that are still to come."""
        return self._asked._replace(first=self.position)

    @property
    def is_whole(self) -> bool:
        """Whether all came that was asked for."""
        return self.position == self._end

    def begin(self, answer: Answer) -> None:
        """The body of `answer` comes now."""
        self.position = answer.begins
        if self._asked.changes:
            self._end = self.position
        self.sink.begin(self.position)

    def take(self, data: bytes) -> None:
        """The next bytes of the body."""
        self.sink.write(self.position, data)
        self.position += len(data)
        if self._asked.changes:  # it ends where the body ends
            self._end = self.position

    def start_over(self) -> None:
        """Nothing that is here is of use."""
        self.position = self._asked.first

    def breaks(self) -> int:
        """Note that the connection broke; how often in a row it did so before anything new came."""
        self._breaks = 0 if self.position > self._furthest else self._breaks + 1
        self._furthest = max(self._furthest, self.position)
        if not self._asked.proved:
            self.start_over()  # nothing would tell that both parts are of one file
        return self._breaks
