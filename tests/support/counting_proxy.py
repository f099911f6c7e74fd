"""A proxy on loopback that counts requests and bytes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.support.listening import listening

_SECONDS = 30


@dataclass
class Counted:
    """The requests, connections and bytes that passed."""

    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    """First lines."""
    connections: int = 0
    agents: list[bytes] = field(default_factory=list)
    """The User-Agent of each request that has one."""
    received: int = 0
    """Bytes that the upstream sent."""


@contextmanager
def counting(upstream: str) -> Iterator[Counted]:
    """Pass everything on to the server at `upstream`; yields the proxy's figures and address."""
    split = urlsplit(upstream)
    assert split.hostname is not None
    assert split.port is not None
    target = (split.hostname, split.port)
    counted = Counted()

    def serve_client(client: socket.socket) -> None:
        counted.connections += 1
        threading.Thread(target=_serve, args=(client, target, counted), daemon=True).start()

    with listening(serve_client) as port:
        counted.url = f"http://127.0.0.1:{port}"
        yield counted


def _serve(client: socket.socket, target: tuple[str, int], counted: Counted) -> None:
    with client, socket.create_connection(target, timeout=_SECONDS) as server:
        client.settimeout(_SECONDS)
        back = threading.Thread(target=_answers, args=(server, client, counted), daemon=True)
        back.start()
        while data := _receive(client):
            lines = data.split(b"\r\n")
            counted.requests += [
                line for line in lines if line.endswith((b" HTTP/1.1", b" HTTP/1.0"))
            ]
            headers = (line.partition(b": ") for line in lines)
            counted.agents += [value for name, _, value in headers if name.lower() == b"user-agent"]
            server.sendall(data)
        _end(server)
        back.join(_SECONDS)


def _answers(server: socket.socket, client: socket.socket, counted: Counted) -> None:
    while data := _receive(server):
        counted.received += len(data)
        try:
            client.sendall(data)
        except OSError:
            return
    _end(client)


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""


def _end(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return
