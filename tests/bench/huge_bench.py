"""Large files of which little changed, compared with `rsync --inplace`.

Ours gets metadata and blocks over HTTP (nginx), the peer asks a stock rsync daemon.  Each case has
trees of its own; with less room on the disk than four copies need, files are smaller, and the
figure says so.  Where `--dir` is on XFS or btrfs, files are cloned; elsewhere changed in place.
"""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, Self

from tests.bench.figures import Figure, Goal, show
from tests.bench.line import line_to
from tests.bench.programs import Program, serving
from tests.bench.spending import spend
from tests.bench.stand import Stand, show_progress
from tests.support.nginx import nginx
from tests.support.reflinks import shares_blocks
from tests.support.rsyncd import rsync_daemon

MIB, GIB = 1 << 20, 1 << 30
_COPIES = 5
"""The copies of a file that the disk has room for."""
_RANDOM = 8 * MIB
_WRITTEN = 4096
_WRITES = 10
_SPARSE = 20 * GIB
_NAME = "image"
_INDEXING = "indexing"
_START = 10**18


class Case(NamedTuple):
    """One kind of change of one file."""

    name: str
    title: str
    make: Callable[[Path], None]
    change: Callable[[Path, int], None]
    """Told how often that was done before."""
    seconds: Goal | None = None
    received: Goal | None = None
    data: int = 0
    """Bytes at the beginning that are no hole; 0: all."""
    plain: bool = False
    """Set up by `add` alone: the upstream names the daemon, and nothing is changed in place."""


def figures(stand: Stand) -> Iterator[Figure]:
    """Times, medians; and the bytes that came in the last round."""
    room = shutil.disk_usage(stand.folder).free // _COPIES // _RANDOM * _RANDOM
    large = min(8 * GIB, room)
    cases = {case.name: case for case in _cases(large)}
    for name in stand.chosen([*cases, _INDEXING]):
        if name == _INDEXING:
            yield from _indexing(stand, large)
        else:
            with _Ground(stand, cases[name]) as ground:
                yield from ground.measure()


def _cases(large: int) -> Iterator[Case]:
    half = 10 * MIB
    yield Case(
        "swapped",
        "20 MiB, its halves swapped",
        partial(fill, 2 * half),
        partial(_swap, half),
        Goal(0.3, "< 0.3 s"),
        Goal(2 * half // 100, "< 1 %"),
    )
    blocks = Goal(_WRITES * MIB * 1.02, "the blocks")
    yield Case(
        "scattered",
        f"{show(large, 'B')}, {_WRITES} blocks of 4 KiB written",
        partial(fill, large),
        partial(_scatter, large),
        Goal(2.0, "< 1 s with reflinks, < 2 s in place"),
        blocks,
    )
    yield Case(
        "plain",
        f"{show(min(GIB, large), 'B')}, {_WRITES} blocks of 4 KiB written, set up by `add` alone",
        partial(fill, min(GIB, large)),
        partial(_scatter, min(GIB, large)),
        received=blocks,
        plain=True,
    )
    for name, size in ("inserted", MIB), ("shifted", _WRITTEN):
        yield Case(
            name,
            f"{show(large, 'B')}, {show(size, 'B')} inserted at the start",
            partial(fill, large),
            partial(_insert, size),
            received=Goal(2.1 * MIB, "few blocks"),
        )
    disc = min(4 * GIB, large)
    yield Case(
        "renewed",
        f"{show(disc, 'B')}, a third of it new",
        partial(fill, disc),
        partial(_renew, disc),
        received=Goal(disc / 3 * 1.02, "the third and 2 %"),
    )
    yield Case(
        "sparse",
        f"{show(_SPARSE, 'B')} with {show(GIB, 'B')} of data, {_WRITES} blocks of 4 KiB written",
        partial(_sparse, min(GIB, large)),
        partial(_scatter, min(GIB, large)),
        received=blocks,
        data=min(GIB, large),
    )


def _indexing(stand: Stand, size: int) -> Iterator[Figure]:
    """Measure the upstream's first commit of one large file, by the clock."""
    tree = stand.folder / "indexed"
    tree.mkdir()
    fill(size, tree / _NAME)
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(stand.rounds + 1):
        server = Program("huai-server", stand.folder / f"indexing-{number}")
        server.run("add", "huge", tree)
        stand.rest()
        times = [
            spend(server.command("commit", "huge")).wall,
            spend(["b3sum", str(tree / _NAME)]).wall,
        ]
        if number:  # the first one brings it into memory
            ours.append(times[0])
            theirs.append(times[1])
    shutil.rmtree(tree)
    yield Figure(
        f"first commit of one file of {show(size, 'B')}, with its index",
        median(ours),
        "s",
        "b3sum",
        median(theirs),
        Goal(1.1, "1.1", ratio=True),
    )


class _Ground:
    """An upstream and two downstreams of one file; everything is removed at the end."""

    def __init__(self, stand: Stand, case: Case) -> None:
        self._stand = stand
        self._folder = stand.folder / "huge"
        self._case = case
        self._file = self._folder / "tree" / "huge" / _NAME
        self._server = Program("huai-server", self._folder / "server")
        self._client = Program("huai-client", self._folder / "client")
        self._closing = ExitStack()
        self._daemon = ""

    def __enter__(self) -> Self:
        show_progress(f"making {self._case.title}")
        self._file.parent.mkdir(parents=True)
        self._closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
        self._case.make(self._file)
        for name in ("ours", "theirs"):
            copy = ["cp", "-a", "--sparse=always", str(self._file.parent), str(self._folder / name)]
            subprocess.run(copy, check=True)
        url = self._closing.enter_context(rsync_daemon({"huge": self._file.parent}))
        self._daemon = f"rsync://127.0.0.1:{self._near(int(url.rpartition(':')[2]))}/huge"
        self._server.run("add", "huge", self._file.parent, "--content-url", self._daemon)
        self._server.run("commit", "huge")
        port = self._near(self._closing.enter_context(serving(self._server)))
        where = (f"http://127.0.0.1:{port}", self._folder / "ours")
        if self._case.plain:
            self._client.run("add", "huge", *where)
        else:
            web = self._near(self._closing.enter_context(nginx(self._folder / "tree")).port)
            self._client.run("add", "huge", *where, "--content-url", f"http://127.0.0.1:{web}/huge")
            with (self._folder / "client" / "client.toml").open("a") as config:
                config.write('in_place = ["*"]\n')
        self._client.run("sync", "huge", "--quiet")
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def measure(self) -> Iterator[Figure]:
        """Each in turn, as often as the stand says."""
        ours: list[float] = []
        theirs: list[float] = []
        received = 0
        rounds = 1 if self._case.data else self._stand.rounds  # rsync reads all holes
        for number in range(rounds):
            self._case.change(self._file, number)
            os.utime(self._file, ns=(0, _START + number * 10**9))
            self._server.run("commit", "huge")
            runs = [self._huai, self._rsync]
            for run in runs if number % 2 == 0 else reversed(runs):
                os.sync()
                self._stand.rest()
                if run == self._huai:
                    spent = spend(run(), until=b'"type":"sync"')
                    ours.append(spent.wall)
                    received = _received(spent.output)
                else:
                    theirs.append(spend(run()).wall)
            self._compare()
        elsewhere = "copied" if self._case.plain else "in place"
        how = "reflinks" if shares_blocks(self._folder) else elsewhere
        peer = ("rsync --inplace", median(theirs))
        yield Figure(f"{self._case.title}, {how}", median(ours), "s", *peer, self._case.seconds)
        yield Figure(f"{self._case.title}, bytes", received, "B", goal=self._case.received)

    def _huai(self) -> list[str]:
        return self._client.command("sync", "huge", "--json")

    def _rsync(self) -> list[str]:
        how = ["-a", "--inplace", "--no-whole-file"]
        return ["rsync", *how, f"{self._daemon}/", f"{self._folder / 'theirs'}/"]

    def _near(self, port: int) -> int:
        line = self._stand.line
        return self._closing.enter_context(line_to(port)) if line else port

    def _compare(self) -> None:
        """A figure of what was not done right means nothing."""
        for name in ("ours", "theirs"):
            copy = self._folder / name / _NAME
            some = ["-n", str(self._case.data)] if self._case.data else []
            subprocess.run(["cmp", *some, str(self._file), str(copy)], check=True)


def _received(output: bytes) -> int:
    events = map(json.loads, output.splitlines())
    return next(int(event["received"]) for event in events if event["type"] == "sync")


def fill(size: int, path: Path) -> None:
    """Real data, no two blocks alike."""
    data = bytearray(os.urandom(min(size, _RANDOM)))
    with path.open("wb") as file:
        for at in range(0, size, _RANDOM):
            for begin in range(0, len(data), 4096):
                data[begin : begin + 8] = (at + begin).to_bytes(8)
            file.write(data[: min(_RANDOM, size - at)])


def _sparse(data: int, path: Path) -> None:
    fill(data, path)
    os.truncate(path, _SPARSE)


def _swap(half: int, path: Path, _number: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[half:] + content[:half])


def _scatter(size: int, path: Path, number: int) -> None:
    places = random.Random(number)
    with path.open("r+b") as file:
        for _ in range(_WRITES):
            file.seek(places.randrange(size // _WRITTEN) * _WRITTEN)
            file.write(os.urandom(_WRITTEN))


def _insert(size: int, path: Path, _number: int) -> None:
    new = path.with_name("new")
    with new.open("wb") as file, path.open("rb") as old:
        file.write(os.urandom(size))
        shutil.copyfileobj(old, file, _RANDOM)
    new.rename(path)


def _renew(size: int, path: Path, _number: int) -> None:
    with path.open("r+b") as file:
        file.seek(size // 2)
        for _ in range(size // 3 // _RANDOM):
            file.write(os.urandom(_RANDOM))
