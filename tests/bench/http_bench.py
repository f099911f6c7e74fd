"""How many "nothing new" a second the server answers.

One server process, one loader process with a few keep-alive connections, on loopback.  The
server's own CPU time for an answer is what counts; the rate of the clock also depends on
how fast the loader is and on what else the machine does.
"""

import asyncio
import statistics
import time
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple, cast

import uvloop

from tests.bench.figures import Figure, Goal
from tests.bench.processor import processor_time
from tests.bench.stand import Stand
from tests.support.committing import NAME
from tests.support.http_fixtures import Server, running
from tests.support.static_files import Publisher

CONNECTIONS = 16
REQUESTS = 8000
"""A round, of each kind."""
SECONDS = 60


class Result(NamedTuple):
    """One round."""

    rate: float
    cpu: float


class Loader(asyncio.Protocol):
    """Sends the next request as soon as the answer, whose length is known, is there."""

    def __init__(self, request: bytes, size: int, count: int) -> None:
        self._request = request
        self._size = size
        self._left = count
        self._got = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has another base
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Count, and go on."""
        self._got += len(data)
        if self._got < self._size:
            return
        assert self._got == self._size, "an answer of another length"
        self._got = 0
        self._left -= 1
        if self._left:
            self._transport.write(self._request)
        elif not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server must not hang up."""
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed"))


def figures(stand: Stand) -> Iterator[Figure]:
    """Answers a second and the server's CPU time for each kind of request."""
    folder = stand.folder / "http"
    folder.mkdir()
    publisher = Publisher(folder)
    commit = publisher.change(1)
    publisher.publish()
    with running(publisher.repositories(folder / "served")) as server:
        for title, request in _requests(server, commit).items():
            result = measure(server, request, stand.rounds)
            yield Figure(f"{title}: answers a second", result.rate, "/s")
            goal = Goal(1000, "< 1 ms")
            yield Figure(f"{title}: server's CPU each", result.cpu * 1e6, "µs", goal=goal)


def _requests(server: Server, commit: str) -> dict[str, bytes]:
    head = f"/git/{NAME}.git/static/head"
    with urllib.request.urlopen(server.url + head, timeout=SECONDS) as answer:  # noqa: S310 (our own)
        etag = answer.headers["ETag"]
    return {
        "static head": get(head),
        "static head, nothing new": get(head, f"If-None-Match: {etag}"),
        "API, not modified": get("/api/v1/modules/m", f'If-None-Match: W/"{commit}"'),
        "health": get("/healthz"),
    }


def get(target: str, *headers: str) -> bytes:
    """A request."""
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def measure(server: Server, request: bytes, rounds: int) -> Result:
    """The median of several rounds."""
    size = _answer_size(server, request)
    results = [uvloop.run(_round(server, request, size)) for _ in range(rounds)]
    rate = statistics.median(result.rate for result in results)
    return Result(rate, statistics.median(result.cpu for result in results))


def _answer_size(server: Server, request: bytes) -> int:
    """The length of one whole answer, which is warm afterwards."""
    with server.connect() as connection:
        connection.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(1 << 16)
        head = answer.partition(b"\r\n\r\n")[0].lower()
        assert head.startswith((b"http/1.1 200", b"http/1.1 304")), head
        length = [line for line in head.split(b"\r\n") if line.startswith(b"content-length")]
        return len(head) + 4 + (int(length[0].split(b":")[1]) if length else 0)


async def _round(server: Server, request: bytes, size: int) -> Result:
    loop = asyncio.get_running_loop()
    requests_each = REQUESTS // CONNECTIONS
    cpu, begin = processor_time(server.process.pid), time.monotonic()
    connections = [
        await loop.create_connection(
            lambda: Loader(request, size, requests_each), "127.0.0.1", server.port
        )
        for _ in range(CONNECTIONS)
    ]
    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*(loader.done for _, loader in connections))
    seconds = time.monotonic() - begin
    used = processor_time(server.process.pid) - cpu
    for transport, _ in connections:
        transport.close()
    total = requests_each * CONNECTIONS
    return Result(total / seconds, used / total)
