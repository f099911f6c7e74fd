"""Content that `huai-server serve` hands out, beside nginx on the same tree.

One process each, on loopback, warm cache: a file of 1 GiB, and small files on connections that are
kept.  nginx sends by sendfile(2), from a kernel's page to the line; `serve` reads blocks in threads
and writes them.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import uvloop

from tests.bench.figures import Figure
from tests.bench.http_bench import CONNECTIONS, Loader
from tests.bench.processor import processor_time
from tests.bench.stand import Stand
from tests.support.committing import NAME
from tests.support.nginx import nginx
from tests.support.serving import serving

_LARGE = 1 << 30
_SMALL = 4096
_FILES = 64
_REQUESTS = 8000
"""A round, of small files."""
_SECONDS = 60
_ROOM = 1 << 20


class _Server(NamedTuple):
    """One of the two."""

    port: int
    process: int
    prefix: str


class _Spent(NamedTuple):
    wall: float
    cpu: float


def figures(stand: Stand) -> Iterator[Figure]:
    """Time and the server's CPU time, of both."""
    folder = stand.folder / "content"
    tree, root = folder / "tree", folder / "state"
    stand.make(make_tree, tree)
    server = stand.server._replace(root=root)
    server.run("add", NAME, tree, "--serve-content")
    server.run("commit", NAME)
    quick = "sendfile on; tcp_nopush on; access_log off; keepalive_requests 1000000;"
    with serving(root) as ours, nginx(tree, location=quick) as theirs:
        both = (
            _Server(ours.port, ours.process.pid, f"/content/{NAME}"),
            _Server(theirs.port, theirs.process.pid, ""),
        )
        one, other = _compared(both, _fetch, stand.rounds)
        yield Figure("a file of 1 GiB", one.wall, "s", "nginx", other.wall)
        yield Figure("a file of 1 GiB: server's CPU", one.cpu, "s", "nginx", other.cpu)
        one, other = _compared(both, _fetch_many, stand.rounds)
        many = (_REQUESTS / each.wall for each in (one, other))
        yield Figure("files of 4 KiB a second", next(many), "/s", "nginx", next(many))
        each = (each.cpu / _REQUESTS * 1e6 for each in (one, other))
        yield Figure("a file of 4 KiB: server's CPU", next(each), "µs", "nginx", next(each))


def make_tree(root: Path) -> None:
    """Make the large file, and the small ones."""
    root.mkdir(parents=True)
    with (root / "large").open("wb") as file:
        for _ in range(_LARGE // _ROOM):
            file.write(os.urandom(_ROOM))
    for number in range(_FILES):
        (root / f"small-{number}").write_bytes(os.urandom(_SMALL))


def _compared(
    both: tuple[_Server, _Server], fetch: Callable[[_Server], None], rounds: int
) -> list[_Spent]:
    """The medians of each server, in turns."""
    spent: list[list[_Spent]] = [[], []]
    for _ in range(rounds + 1):
        for server, rows in zip(both, spent, strict=True):
            cpu, begin = processor_time(server.process), time.monotonic()
            fetch(server)
            wall = time.monotonic() - begin
            rows.append(_Spent(wall, processor_time(server.process) - cpu))
    # The first round warms up.
    columns = (zip(*rows[1:], strict=True) for rows in spent)
    return [_Spent(*map(statistics.median, each)) for each in columns]


def _fetch(server: _Server) -> None:
    uvloop.run(_all_of(server, [f"{server.prefix}/large"], 1, _LARGE))


def _fetch_many(server: _Server) -> None:
    paths = [f"{server.prefix}/small-{number}" for number in range(_FILES)]
    uvloop.run(_all_of(server, paths, _REQUESTS // CONNECTIONS, _SMALL))


async def _all_of(server: _Server, paths: list[str], each: int, size: int) -> None:
    """Fetch from as many connections as there are paths, at most `CONNECTIONS`."""
    loop = asyncio.get_running_loop()
    loaders = []
    for path in paths[:CONNECTIONS]:
        request = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        head = await _head_size(server, request)
        made = await loop.create_connection(
            partial(Loader, request, head + size, each), "127.0.0.1", server.port
        )
        loaders.append(made)
    async with asyncio.timeout(_SECONDS):
        await asyncio.gather(*(loader.done for _, loader in loaders))
    for transport, _ in loaders:
        transport.close()


async def _head_size(server: _Server, request: bytes) -> int:
    """Bytes before the content."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request.replace(b"GET", b"HEAD"))
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    writer.close()
    return len(head)
