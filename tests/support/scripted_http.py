"""A web server that answers as a test says: with anything at all, one request a connection."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.support.listening import listening

_SECONDS = 30
_HEAD_MAX = 65_536


class Request(NamedTuple):
    """A request to the server."""

    path: str
    headers: dict[str, str]
    """By name in lower case."""

    @property
    def first(self) -> int:
        """The first byte of the requested range, or 0."""
        return int(self.headers.get("range", "bytes=0-").removeprefix("bytes=").split("-")[0])


class Reply(NamedTuple):
    """A response; a test chooses its faults."""

    status: str = "200 OK"
    headers: tuple[str, ...] = ()
    body: bytes = b""
    counted: bool = True
    """True to send the Content-Length of the body."""


class Scripted:
    """A running server, and its requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        """Without a slash."""
        self.questions: list[Request] = []


@contextmanager
def scripted(
    reply: Callable[[Request], Reply], tls: ssl.SSLContext | None = None
) -> Iterator[Scripted]:
    """Answer each request by `reply`."""
    threads: list[threading.Thread] = []

    def start_thread(client: socket.socket) -> None:
        thread = threading.Thread(target=serve, args=(client,))
        thread.start()
        threads.append(thread)

    def serve(client: socket.socket) -> None:
        client.settimeout(_SECONDS)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(client.close)
            spoken = client
            if tls is not None:
                spoken = stack.enter_context(tls.wrap_socket(client, server_side=True))
            question = _read(spoken)
            if question is None:
                return
            server.questions.append(question)
            answer = reply(question)
            length = (f"Content-Length: {len(answer.body)}",) if answer.counted else ()
            lines = [f"HTTP/1.1 {answer.status}", *length, *answer.headers, "Connection: close"]
            spoken.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body)

    with listening(start_thread) as port:
        server = Scripted(f"{'https' if tls else 'http'}://127.0.0.1:{port}")
        try:
            yield server
        finally:
            for thread in threads:
                thread.join(_SECONDS)


def _read(client: socket.socket) -> Request | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = client.recv(1)
        if not data or len(head) > _HEAD_MAX:
            return None
        head += data
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Request(first.split()[1], {name.lower(): value.strip() for name, _, value in pairs})
