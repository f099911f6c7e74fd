"""A connection on which one question of HTTP follows another, each with its own patience.

Rules, from the moment a question is sent:

- Its answer has the timeout, and a second more for each `MINIMUM_RATE` bytes of its body that were
  handed over.  What else comes (interim answers, headers, trailers) earns no time.
- The timeout is for each time that nothing comes, too.
- At the deadline, and after `LONGEST`, it is over however fast it comes.
"""

import io
import socket
import time
import weakref
from typing import Any

from huai_client.metadata.http_connection import Route
from huai_client.run.deadline import Deadline

MINIMUM_RATE = 1024
"""Bytes a second that an upstream has to send on average."""
LONGEST = 86_400.0
"""Seconds that one answer may take."""
LATE = "the metadata did not come in time, and nothing was changed"


class SlowError(TimeoutError):
    """Something comes, and too little."""


class MinimumRate(io.RawIOBase):
    """A socket's stream, read only while it sends at least `MINIMUM_RATE`; see `begin`."""

    def __init__(self, sock: socket.socket) -> None:
        self._raw = sock.makefile("rb", buffering=0)
        self._sock = sock

    def begin(self, timeout: float, deadline: Deadline) -> None:
        """From now on an answer is waited for."""
        self._deadline = deadline
        self._patience = timeout
        self._began = time.monotonic()
        self.received = 0
        """Bytes of the answer, all that belongs to it."""
        self.handed = 0
        """Bytes of its body that somebody has taken."""

    def renew(self) -> None:
        """As if the answer began now."""
        self.begin(self._patience, self._deadline)

    def readable(self) -> bool:
        """As `BufferedReader` asks."""
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        """What comes next; `SlowError` if that took too long, `TimeUpError` at the deadline."""
        taken = time.monotonic() - self._began
        if taken > min(self._patience + self.handed / MINIMUM_RATE, LONGEST):
            raise SlowError("sends too slowly")
        self._deadline.check(LATE)
        self._sock.settimeout(self._deadline.bound(self._patience))
        try:
            size = self._raw.readinto(buffer)
        except TimeoutError:
            self._deadline.check(LATE)
            raise
        self.received += size or 0
        return size

    def release(self) -> None:
        """Close the socket's stream; until then the socket stays open, even if it is closed."""
        self._raw.close()


class Line:
    """To where a route leads; whoever lets go of it closes it."""

    def __init__(self, sock: socket.socket, route: Route) -> None:
        """Takes over `sock`, on which nothing was asked yet."""
        self._sock = sock
        self._place = route.place
        self._rated = MinimumRate(sock)
        self.stream = io.BufferedReader(self._rated)
        # A poll that finds nothing new asks nothing else and lets go.  Not `__del__`, which is
        # called as well if a signal ends this method in its middle.
        self._finalizer = weakref.finalize(self, _close, self._rated, sock)

    def close(self) -> None:
        """Whatever is still to come."""
        self._finalizer()

    def leads(self, route: Route) -> bool:
        """Whether what the route leads to is what answers here."""
        return self._place == route.place

    def send(self, data: bytes, timeout: float, deadline: Deadline) -> None:
        """Ask; `timeout` (s) and `deadline` are for the answer."""
        self._rated.begin(timeout, deadline)
        self._sock.settimeout(deadline.bound(timeout))
        self._sock.sendall(data)

    def renew(self) -> None:
        """What comes from now on has the time of a new answer."""
        self._rated.renew()

    @property
    def silent(self) -> bool:
        """Whether nothing came since the last question."""
        return not self._rated.received

    def earn(self, size: int) -> None:
        """Say that somebody has taken `size` bytes of a body."""
        self._rated.handed += size


def _close(rated: MinimumRate, sock: socket.socket) -> None:
    rated.release()
    sock.close()
