"""A proxy on loopback that counts requests and bytes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.support.listening import listening
from tests.support.weak_network import pass_on

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
    sent_bytes: int = 0
    """Bytes that clients sent."""
    received: int = 0
    """Bytes that the upstream sent."""

    def count_request(self, data: bytes) -> bytes:
        """Count what a client sends; return it."""
        self.sent_bytes += len(data)
        lines = data.split(b"\r\n")
        self.requests += [line for line in lines if line.endswith((b" HTTP/1.1", b" HTTP/1.0"))]
        headers = (line.partition(b": ") for line in lines)
        self.agents += [value for name, _, value in headers if name.lower() == b"user-agent"]
        return data

    def count_answer(self, data: bytes) -> bytes:
        """Count what the upstream sends; return it."""
        self.received += len(data)
        return data


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
        back = threading.Thread(target=pass_on, args=(server, client, counted.count_answer))
        back.daemon = True
        back.start()
        pass_on(client, server, counted.count_request)
        back.join(_SECONDS)
