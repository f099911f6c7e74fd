"""An HTTP proxy on loopback that connects to whatever a client names (CONNECT)."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.listening import listening

_SECONDS = 30


@contextmanager
def connecting(heads: list[bytes]) -> Iterator[str]:
    """Serve as a proxy; yields HOST:PORT, and adds the head of each request to `heads`."""

    def start(client: socket.socket) -> None:
        threading.Thread(target=_serve, args=(client, heads), daemon=True).start()

    with listening(start) as port:
        yield f"127.0.0.1:{port}"


def _serve(client: socket.socket, heads: list[bytes]) -> None:
    head = b""
    while not head.endswith(b"\r\n\r\n") and (byte := client.recv(1)):
        head += byte
    heads.append(head)
    host, _, port = head.split()[1].decode().rpartition(":")
    with client, socket.create_connection((host, int(port)), timeout=_SECONDS) as server:
        client.sendall(b"HTTP/1.0 200 OK\r\nX: y\r\n\r\n")
        back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
        back.start()
        _pass_on(client, server)
        back.join(_SECONDS)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
