"""A TCP proxy on loopback that stands for a line: so many bytes a second, and a round trip.

All connections of a line share its rate, each direction for itself, as on a full-duplex line. What
is sent beyond the rate waits in a buffer of bounded time, as in a router; then the sender has to
wait. A connection costs a round trip before its first byte, as TCP's handshake does.
"""

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterator

from tests.support.listening import listening

ROUND_TRIP = 0.04
"""Seconds."""
RATE = 100_000_000 / 8
"""Bytes a second."""
_PIECE = 1 << 14
_BUFFERED = 0.1
"""Seconds of the rate that a sender may be ahead."""
_SECONDS = 900


class _Lane:
    """One direction."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._free = 0.0
        """When the last byte so far has left."""

    def departs(self, size: int) -> float:
        """When a piece has left that is handed over now."""
        with self._guard:
            self._free = max(self._free, time.monotonic()) + size / RATE
            return self._free


@contextlib.contextmanager
def line_to(target: int) -> Iterator[int]:
    """The port at this end of a line to the port `target` on loopback; open connections stay."""
    outward, back = _Lane(), _Lane()

    def serve_client(client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", target), timeout=_SECONDS)
        for connection in (client, server):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(_SECONDS)
        earliest = time.monotonic() + ROUND_TRIP
        _forward(client, server, outward, earliest)
        _forward(server, client, back, earliest - ROUND_TRIP / 2)

    with listening(serve_client) as port:
        yield port


def _forward(source: socket.socket, sink: socket.socket, lane: _Lane, earliest: float) -> None:
    """Forward from `source` to `sink` through a lane, and nothing before `earliest`."""
    pieces: queue.Queue[tuple[float, bytes]] = queue.Queue()

    def receive() -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_PIECE):
                departure = lane.departs(len(data))
                pieces.put((max(departure, earliest) + ROUND_TRIP / 2, data))
                time.sleep(max(0.0, departure - time.monotonic() - _BUFFERED))
        pieces.put((0.0, b""))

    def deliver() -> None:
        with contextlib.suppress(OSError):
            while True:
                due, data = pieces.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)

    for work in (receive, deliver):
        threading.Thread(target=work, daemon=True).start()
