"""An HTTP server in the process of a test, whose handler the test writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

_POLL = 0.01
"""Seconds until the server sees that it shall end; 0.5 unless it is given."""


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def answering(handler: Callable[..., Any]) -> Iterator[str]:
    """Answer each request on a port of loopback by `handler`; yields `http://HOST:PORT`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(_POLL,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
