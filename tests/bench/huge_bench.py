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
from tests.bench.spending import Spent, cpu, spend, wall
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
    keeps_time: bool = False
    """False if each change sets another time too."""


def figures(stand: Stand) -> Iterator[Figure]:
    """Times, medians; and the bytes that came in the last round."""
    room = shutil.disk_usage(stand.folder).free // _COPIES // _RANDOM * _RANDOM
    large = min(8 * GIB, room)
    cases = {case.name: case for case in list_cases(large)}
    for name in stand.chosen([*cases, _INDEXING]):
        if name == _INDEXING:
            yield from _indexing(stand, large)
        else:
            yield from measure_case(stand, cases[name])


def measure_case(stand: Stand, case: Case) -> Iterator[Figure]:
    """Make the files of a case, and change them in each round."""
    with _Ground(stand, case) as ground:
        yield from ground.measure()


def list_cases(large: int) -> Iterator[Case]:
    """Yield all cases, with files of at most so many bytes."""
    half = 10 * MIB
    yield Case(
        "swapped",
        "20 MiB, its halves swapped",
        partial(fill, 2 * half),
        partial(_swap, half),
        Goal(0.3, "< 0.3 s"),
        Goal(2 * half // 100, "< 1 %"),
    )
    yield Case("touched", f"{show(large, 'B')}, touched", partial(fill, large), _keep)
    yield Case(
        "renamed",
        f"{show(large, 'B')}, its directory renamed",
        partial(_fill_below, large),
        _rename,
        keeps_time=True,
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
    peer = "b3sum" if shutil.which("b3sum") else "b2sum"  # the latter comes with coreutils
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
            spend([peer, str(tree / _NAME)]).wall,
        ]
        if number:  # the first one brings it into memory
            ours.append(times[0])
            theirs.append(times[1])
    shutil.rmtree(tree)
    yield Figure(
        f"first commit of one file of {show(size, 'B')}, with its index",
        median(ours),
        "s",
        peer,
        median(theirs),
        Goal(1.1, "1.1", ratio=True),
    )


class _Ground:
    """An upstream and two downstreams of one file; everything is removed at the end."""

    def __init__(self, stand: Stand, case: Case) -> None:
        self._stand = stand
        self._folder = stand.folder / "huge"
        self._case = case
        self._tree = self._folder / "tree" / "huge"
        self._server = Program("huai-server", self._folder / "server")
        self._client = Program("huai-client", self._folder / "client")
        self._closing = ExitStack()
        self._daemon = ""

    def __enter__(self) -> Self:
        show_progress(f"making {self._case.title}")
        self._tree.mkdir(parents=True)
        self._closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
        self._case.make(self._tree / _NAME)
        for name in ("ours", "theirs"):
            copy = ["cp", "-a", "--sparse=always", str(self._tree), str(self._folder / name)]
            subprocess.run(copy, check=True)
        with self._stand.counted():
            self._start()
        return self

    def _start(self) -> None:
        """Start the servers, and let ours adopt its copy."""
        url = self._closing.enter_context(rsync_daemon({"huge": self._tree}))
        self._daemon = f"rsync://127.0.0.1:{self._near(int(url.rpartition(':')[2]))}/huge"
        self._server.run("add", "huge", self._tree, "--content-url", self._daemon)
        self._server.run("commit", "huge")
        port = self._near(self._closing.enter_context(serving(self._server)).port)
        where = (f"http://127.0.0.1:{port}", self._folder / "ours")
        if self._case.plain:
            self._client.run("add", "huge", *where)
        else:
            web = self._near(self._closing.enter_context(nginx(self._folder / "tree")).port)
            self._client.run("add", "huge", *where, "--content-url", f"http://127.0.0.1:{web}/huge")
            with (self._folder / "client" / "client.toml").open("a") as config:
                config.write('in_place = ["*"]\n')
        self._client.run("sync", "huge", "--quiet")

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def measure(self) -> Iterator[Figure]:
        """Each in turn, as often as the stand says."""
        samples: dict[str, list[Spent]] = {"commit": [], "ours": [], "theirs": []}
        received = 0
        rounds = 1 if self._case.data else self._stand.rounds  # rsync reads all holes
        for number in range(rounds):
            self._case.change(self._file, number)
            if not self._case.keeps_time:
                os.utime(self._file, ns=(0, _START + number * 10**9))
            samples["commit"].append(self._stand.spend(self._server.command("commit", "huge")))
            runs = {"ours": self._huai, "theirs": self._rsync}
            for name in runs if number % 2 == 0 else reversed(runs):
                os.sync()
                self._stand.rest()
                samples[name].append(runs[name]())
            received = _received(samples["ours"][-1].output)
            self._compare()
        commit, ours, theirs = samples.values()
        elsewhere = "copied" if self._case.plain else "in place"
        how = "reflinks" if shares_blocks(self._folder) else elsewhere
        title, peer = f"{self._case.title}, {how}", "rsync --inplace"
        yield Figure(title, wall(ours), "s", peer, wall(theirs), self._case.seconds, rounds=rounds)
        seconds = wall(commit) + wall(ours)
        yield Figure(f"{title}, with commit", seconds, "s", peer, wall(theirs), rounds=rounds)
        if self._stand.processor:
            cpus = cpu(ours), "s", peer, cpu(theirs)
            yield Figure(f"{title}, CPU of all processes", *cpus, rounds=rounds)
        yield Figure(f"{title}, bytes", received, "B", goal=self._case.received, rounds=1)

    @property
    def _file(self) -> Path:
        """The one file of the tree."""
        return next(self._tree.rglob(_NAME))

    def _huai(self) -> Spent:
        command = self._client.command("sync", "huge", "--json")
        return self._stand.spend(command, until=b'"type":"sync"')

    def _rsync(self) -> Spent:
        options = ["-a", "--delete", "--inplace", "--no-whole-file"]
        where = [f"{self._daemon}/", f"{self._folder / 'theirs'}/"]
        return self._stand.spend(["rsync", *options, *where])

    def _near(self, port: int) -> int:
        line = self._stand.line
        return self._closing.enter_context(line_to(port)) if line else port

    def _compare(self) -> None:
        """A figure of what was not done right means nothing."""
        for name in ("ours", "theirs"):
            copy = self._folder / name / self._file.relative_to(self._tree)
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


def _fill_below(size: int, path: Path) -> None:
    """Make the file in a directory of its own."""
    folder = path.with_name("old")
    folder.mkdir()
    fill(size, folder / path.name)


def _keep(_path: Path, _number: int) -> None:
    """Change nothing but the time."""


def _rename(path: Path, number: int) -> None:
    path.parent.rename(path.parent.with_name(f"renamed-{number}"))


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
