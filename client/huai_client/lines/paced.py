"""HTTP that does not wait for a trickle: urllib's, with a watch on how fast an answer comes.

Rule: from the moment a question is sent, its answer has the request's timeout, and a second more
for each `PACE` bytes that came; header and body count alike.  Silence is urllib's own
business: the timeout is for each time that nothing comes, too.
"""

import http.client
import io
import socket
import time
import urllib.request
from typing import Any

PACE = 1024
"""Bytes a second that an upstream has to send on average."""


class SlowError(TimeoutError):
    """Something comes, and too little."""


class _Paced(io.RawIOBase):
    """A socket's stream, read only for as long as it keeps the pace."""

    def __init__(self, raw: io.RawIOBase, patience: float) -> None:
        self._raw = raw
        self._patience = patience
        self._began = time.monotonic()
        self._received = 0

    def readable(self) -> bool:
        """As `BufferedReader` asks."""
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        """What comes next; `SlowError` if it took too long by now."""
        size: int | None = self._raw.readinto(buffer)
        self._received += size or 0
        if time.monotonic() - self._began > self._patience + self._received / PACE:
            raise SlowError("sends too slowly")
        return size

    def close(self) -> None:
        """The socket's stream too."""
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        patience = sock.gettimeout()
        if patience is not None:
            self.fp = io.BufferedReader(_Paced(self.fp.detach(), patience))


class _Connection(http.client.HTTPConnection):
    response_class = _Response


class _SecureConnection(http.client.HTTPSConnection):
    response_class = _Response


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req)


def open_url(request: urllib.request.Request, *, timeout: float) -> Any:
    """What `urllib.request.urlopen` does, redirections and proxies included."""
    return urllib.request.build_opener(_Handler, _SecureHandler).open(request, timeout=timeout)
