"""An hour of ten thousand downstreams that poll static files each minute: `serve` and nginx.

Each polls by a connection of its own, as a client that cron starts does; after each commit it asks,
by the same connection, for what huai-client asked for that was as far behind.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isinf
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple, Self

import uvloop

from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository
from huai_schema.codec.static_files import Static
from tests.bench.figures import Figure
from tests.bench.http_bench import get
from tests.bench.processor import processor_time
from tests.bench.stand import Stand, show_progress
from tests.support.committing import NAME
from tests.support.counting_proxy import counting
from tests.support.http_fixtures import running
from tests.support.nginx import nginx
from tests.support.static_files import Publisher

_DOWNSTREAMS = 10_000
_MINUTE = 60
_MINUTES = 60
_COMMIT = 5 * _MINUTE
"""Seconds from commit to commit."""
_FILES, _CHANGED = 30_000, 300
_PLACE = f"/git/{NAME}.git"
_HEAD = f"{_PLACE}/static/head"
_SECONDS = 60
"""After which a request has failed."""
_PERCENT = 100
_OK, _NOT_MODIFIED = 200, 304


@dataclass
class Side:
    """A web server, and what its downstreams saw."""

    name: str
    port: int
    process: int
    etags: dict[int, str] = field(default_factory=dict)
    """By downstream."""
    waits: list[float] = field(default_factory=list)
    """Seconds from the connection to the answer of a poll."""
    fetched: int = 0
    """Downstreams that caught up, each time."""
    bytes: int = 0
    """That came, headers included."""
    failures: Counter[str] = field(default_factory=Counter)
    began: float = 0
    """The processor time that it had used before."""

    @property
    def cpu(self) -> float:
        """Seconds of processor time since it began."""
        return processor_time(self.process) - self.began

    @property
    def memory(self) -> float:
        """Bytes in memory at most."""
        status = Path(f"/proc/{self.process}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def figures(stand: Stand) -> Iterator[Figure]:
    """The cost of the hour."""
    minutes = _MINUTES if isinf(stand.minutes) else stand.minutes
    folder = stand.folder / "downstreams"
    folder.mkdir()
    publisher = Publisher(folder)
    served = publisher.repositories(folder / "served")
    publisher.change(*range(_FILES))
    publisher.publish()
    with running(served) as server, nginx(publisher.folder) as peer:
        ours = Side("serve", server.port, server.process.pid)
        theirs = Side("nginx", peer.port, peer.process.pid)
        way = _Way(publisher, folder / "follower", server.url)
        uvloop.run(_run((ours, theirs), way, minutes * _MINUTE))
        yield from _rows(ours, theirs, minutes)


def _rows(ours: Side, theirs: Side, minutes: float) -> Iterator[Figure]:
    def row(title: str, unit: str, values: tuple[float, float], note: str = "") -> Figure:
        return Figure(title, values[0], unit, theirs.name, values[1], note=note)

    sides = (ours, theirs)
    failed = {side.name: dict(side.failures) for side in sides if side.failures}
    note = (
        f"{minutes:g} minutes, {_DOWNSTREAMS:,} downstreams of each server, a commit of {_CHANGED}"
        f" of {_FILES:,} entries each {_COMMIT // _MINUTE} minutes; failures: {failed or 'none'}"
    )
    yield row("polls", "", (len(ours.waits), len(theirs.waits)), note)
    yield row("of these, that caught up", "", (ours.fetched, theirs.fetched))
    yield row("failed", "", (ours.failures.total(), theirs.failures.total()))
    yield row("server's CPU", "s", (ours.cpu, theirs.cpu))
    share = _PERCENT / (minutes * _MINUTE)
    yield row("server's CPU, percent of a core", "", (ours.cpu * share, theirs.cpu * share))
    yield row("sent", "B", (ours.bytes, theirs.bytes))
    yield row("memory at most", "B", (ours.memory, theirs.memory))
    for part, text in ((50, "median"), (99, "99 %")):
        waits = [quantiles(side.waits, n=_PERCENT)[part - 1] for side in sides]
        yield row(f"poll until answered, {text}", "s", (waits[0], waits[1]))


class _Way:
    """The files that huai-client requests after each commit, by the commit's serial."""

    def __init__(self, publisher: Publisher, follower: Path, url: str) -> None:
        self._publisher, self._follower, self._url = publisher, follower, url
        self._chance = random.Random(1)
        self._paths_by_serial: dict[int, asyncio.Future[list[str]]] = {}
        self._fetch(url)

    async def commit(self) -> None:
        """Commit, publish, and have a client catch up."""
        serial, paths = await asyncio.to_thread(self._commit)
        self._future(serial).set_result(paths)

    async def paths(self, serial: int) -> list[str]:
        """Return the files that lead to a commit from its parent, once they are known."""
        return await asyncio.shield(self._future(serial))

    def _future(self, serial: int) -> asyncio.Future[list[str]]:
        if serial not in self._paths_by_serial:
            self._paths_by_serial[serial] = asyncio.get_running_loop().create_future()
        return self._paths_by_serial[serial]

    def _commit(self) -> tuple[int, list[str]]:
        self._publisher.change(*self._chance.sample(range(_FILES), _CHANGED))
        self._publisher.publish()
        with counting(self._url) as counted:
            self._fetch(counted.url)
        paths = [line.split()[1].decode() for line in counted.requests]
        return self._publisher.head.newest, [path for path in paths if path != _HEAD]

    def _fetch(self, url: str) -> None:
        repository = Repository(self._follower)
        repository.keep([repository.fetch(MetadataUrl(f"{url}{_PLACE}")).id])


async def _run(sides: tuple[Side, ...], way: _Way, seconds: float) -> None:
    """Have all downstreams poll, spread over each minute."""
    for side in sides:
        async with _Connection(side) as connection:
            newest = (await connection.ask(_HEAD)).etag
        side.etags = dict.fromkeys(range(_DOWNSTREAMS), newest)
        side.bytes, side.began = 0, processor_time(side.process)
    begin, commits = time.monotonic(), 0
    async with asyncio.TaskGroup() as tasks:
        for number in range(int(seconds * _DOWNSTREAMS / _MINUTE)):
            due = number * _MINUTE / _DOWNSTREAMS
            await asyncio.sleep(max(0.0, begin + due - time.monotonic()))
            if due >= (commits + 0.5) * _COMMIT:
                commits += 1
                show_progress(f"minute {due / _MINUTE:.0f}: commit {commits}")
                tasks.create_task(way.commit())
            for side in sides:
                tasks.create_task(_poll(side, number % _DOWNSTREAMS, way))


async def _poll(side: Side, downstream: int, way: _Way) -> None:
    """One poll of a downstream, and what follows from it."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(_SECONDS), _Connection(side) as connection:
            head = await connection.ask(_HEAD, side.etags[downstream])
            side.waits.append(time.monotonic() - began)
            if head.status == _NOT_MODIFIED:
                return
            for path in await way.paths(Static.decode(head.body, "head").newest):
                await connection.ask(path)
            side.etags[downstream] = head.etag
            side.fetched += 1
    except (OSError, EOFError, ValueError) as error:
        side.failures[f"{type(error).__name__}: {error}"] += 1


class _Response(NamedTuple):
    status: int
    etag: str
    body: bytes


class _Connection:
    """A downstream's connection, as an asynchronous context manager."""

    def __init__(self, side: Side) -> None:
        self._side = side

    async def __aenter__(self) -> Self:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._side.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        self._writer.close()

    async def ask(self, path: str, etag: str = "") -> _Response:
        """Send a request and return its response; `ValueError` unless it succeeds."""
        self._writer.write(get(path, *([f"If-None-Match: {etag}"] if etag else [])))
        head = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        status = int(first.split()[1])
        if status not in {_OK, _NOT_MODIFIED}:
            raise ValueError(f"{path}: {first}")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        size = int(headers["content-length"]) if status == _OK else 0
        body = await self._reader.readexactly(size)
        self._side.bytes += len(head) + size
        return _Response(status, headers.get("etag", ""), body)
