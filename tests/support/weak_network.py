"""Upstreams that are there and of little use: silent, slow, cut, stalled and busy ones."""

import contextlib
import socket
import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.support.answering import QuietHandler, answering
from tests.support.listening import listening

_SECONDS = 30
_PIECE = 8


@contextmanager
def silent() -> Iterator[str]:
    """`HOST:PORT` that takes every connection and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def unused_port() -> Iterator[str]:
    """Yield `HOST:PORT` of a port on which no process listens, and which stays reserved."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


@dataclass(frozen=True)
class Weakness:
    """The faults of a connection; pace and limit apply from the server to the client."""

    pace: int = 0
    """Bytes of an answer a second; 0: as fast as they come."""
    most: int = 0
    """Bytes of the answers of one connection; 0: all."""
    stalls: bool = False
    """After that it says nothing more, instead of closing."""
    tls: ssl.SSLContext | None = None
    """The client has to speak TLS."""

    @property
    def piece(self) -> int:
        """Bytes that are passed on at a time."""
        return _PIECE if self.pace else 65_536


@contextmanager
def weak(url: str, weakness: Weakness, edit: Callable[[bytes], bytes] = bytes) -> Iterator[str]:
    """The server at `url`, by a line that is not what it should be; yields `HOST:PORT`.

    The server gets what `edit` makes of what clients send.
    """
    split = urlsplit(url)
    assert split.port is not None
    target = (str(split.hostname), split.port)
    over = threading.Event()
    clients: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def start_relay(client: socket.socket) -> None:
        clients.append(client)
        thread = threading.Thread(target=_relay, args=(client, target, weakness, edit, over))
        threads.append(thread)
        thread.start()

    try:
        with listening(start_relay) as port:
            try:
                yield f"127.0.0.1:{port}"
            finally:
                over.set()
                for client in clients:  # which may be kept open, to ask for more
                    with contextlib.suppress(OSError):
                        client.shutdown(socket.SHUT_RDWR)
    finally:
        for thread in threads:
            thread.join(_SECONDS)


def trickling(url: str, pace: int) -> AbstractContextManager[str]:
    """The server at `url`, whose answers come at `pace` bytes a second; yields `HOST:PORT`."""
    return weak(url, Weakness(pace=pace))


def _relay(
    client: socket.socket,
    target: tuple[str, int],
    weakness: Weakness,
    edit: Callable[[bytes], bytes],
    over: threading.Event,
) -> None:
    client.settimeout(_SECONDS)
    with contextlib.ExitStack() as stack:
        stack.callback(client.close)
        if weakness.tls is not None:
            try:
                client = stack.enter_context(weakness.tls.wrap_socket(client, server_side=True))
            except OSError:
                return  # the client did not like the certificate
        server = stack.enter_context(socket.create_connection(target, timeout=_SECONDS))
        forward = threading.Thread(target=pass_on, args=(client, server, edit))
        forward.start()
        with contextlib.suppress(OSError):
            _answers(server, client, weakness, over)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        # Closed with something unread, a connection takes back what the client did not read yet.
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_WR)
        forward.join(_SECONDS)
        with contextlib.suppress(OSError):
            while client.recv(65_536):
                pass


def _answers(
    server: socket.socket, client: socket.socket, weakness: Weakness, over: threading.Event
) -> None:
    pause = weakness.piece / weakness.pace if weakness.pace else 0.0
    left = weakness.most or 1 << 60
    while left and not over.wait(pause) and (data := server.recv(min(left, weakness.piece))):
        client.sendall(data)
        left -= len(data)
    if not left and weakness.stalls:
        over.wait(_SECONDS)


def pass_on(
    source: socket.socket, target: socket.socket, edit: Callable[[bytes], bytes] = bytes
) -> None:
    """Pass what one end sends on to the other one, as `edit` makes it."""
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(edit(data))
        target.shutdown(socket.SHUT_WR)


@contextmanager
def tunnel() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that only knows CONNECT: its `HOST:PORT`, and the heads of the requests it gets."""
    heads: list[bytes] = []

    def connect(client: socket.socket) -> None:
        with client:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += client.recv(1)
            heads.append(head)
            host, _, port = head.split()[1].decode().partition(":")
            with socket.create_connection((host, int(port)), timeout=_SECONDS) as server:
                client.sendall(b"HTTP/1.1 200 Go\r\n\r\n")
                back = threading.Thread(target=pass_on, args=(server, client))
                back.start()
                pass_on(client, server)
                back.join(_SECONDS)

    with listening(connect) as port:
        yield f"127.0.0.1:{port}", heads


@dataclass
class Busy:
    """A server that refuses for a while."""

    url: str = ""
    refusals: int = 0
    """How many requests it still refuses."""
    status: int = 503
    retry_after: str = "1"
    reason: str = "Busy"
    requests: int = 0
    """How many requests came."""


@contextmanager
def busy(upstream: str) -> Iterator[Busy]:
    """Yield a proxy of the server at `upstream` that refuses as often as configured."""
    state = Busy()
    with answering(_handler(upstream, state)) as state.url:
        yield state


def _handler(upstream: str, state: Busy) -> type[QuietHandler]:
    class Handler(QuietHandler):
        """Refuses, or passes on."""

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes | None) -> None:
            state.requests += 1
            if state.refusals:
                state.refusals -= 1
                self.send_response(state.status, state.reason)
                self.send_header("Retry-After", state.retry_after)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            kind = {"Content-Type": self.headers.get("Content-Type", "text/plain")}
            request = urllib.request.Request(upstream + self.path, body, kind)  # noqa: S310 - ours
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
                data = answer.read()
                self.send_response(200)
                self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
