"""A TCP proxy on loopback that counts what passes: bytes either way, HTTP requests.

It changes nothing, and speaks no HTTP: a request is a line that ends as one does.
"""

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from typing import Self

from tests.support.listening import listening

_PIECE = 1 << 16
_SECONDS = 120
_REQUEST = re.compile(rb"^(?:GET|POST|HEAD) \S+ HTTP/1\.[01]\r$", re.MULTILINE)


class Wire:
    """Forwards connections to a port on loopback, as a context manager."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._closing = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.port = 0
        """The port to connect to, once the context is entered."""
        self.sent_bytes = 0
        """Bytes from the client."""
        self.received = 0
        """Bytes from the server."""
        self.requests = 0

    def __enter__(self) -> Self:
        """Start."""
        self.port = self._closing.enter_context(listening(self._serve_client))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and wait until what was under way is counted."""
        self._closing.close()
        for thread in self._threads:
            thread.join(_SECONDS)

    @property
    def url(self) -> str:
        """Return the URL to connect to."""
        return f"http://127.0.0.1:{self.port}"

    def _serve_client(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._target), timeout=_SECONDS)
        client.settimeout(_SECONDS)
        self._start(client, server, self._count_sent)
        self._start(server, client, self._count_received)

    def _start(self, *arguments: object) -> None:
        thread = threading.Thread(target=self._pass_on, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _pass_on(
        self, source: socket.socket, sink: socket.socket, count: Callable[[bytes], None]
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_PIECE):
                count(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def _count_sent(self, data: bytes) -> None:
        with self._lock:
            self.sent_bytes += len(data)
            self.requests += len(_REQUEST.findall(data))

    def _count_received(self, data: bytes) -> None:
        with self._lock:
            self.received += len(data)
