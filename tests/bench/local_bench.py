"""A first sync from a path of this machine, beside `rsync -a` and msrsync.

Empty files, whose content costs nothing, and small ones.  msrsync (github: jbd/msrsync, `msrsync3`)
is measured if HUAI_BENCH_MSRSYNC names its script.  Every round makes a fresh copy and deletes
none: a large tree that was just deleted makes ext4 slow for seconds.
"""

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.figures import Figure, Goal
from tests.bench.programs import Program, serving
from tests.bench.spending import Spent, cpu, spend, take_turns, wall
from tests.bench.stand import Stand

_STREAMS = 4
_SHARE = 3
"""A third of the entries asked for are so many empty files, a fifth of these so many small ones."""
_SMALL_SHARE = 5
_FOLDER = 100
"""Files in each folder."""
_SMALL = (1000, 30_000)
"""Bytes."""
_MSRSYNC = "HUAI_BENCH_MSRSYNC"
_FASTER = Goal(1 / 2.2, "2.2 times as fast", ratio=True)
_AHEAD = Goal(1.0, "ahead", ratio=True)
_ABSENT = f"msrsync was not measured: {_MSRSYNC} has to name its script, `msrsync3`"


def figures(stand: Stand) -> Iterator[Figure]:
    """The whole process, its CPU time."""
    files = stand.entries // _SHARE
    yield from _of_tree(stand, "empty", f"{files:,} empty files", files)
    files //= _SMALL_SHARE
    yield from _of_tree(stand, "small", f"{files:,} files of 1 to 30 KB", files, *_SMALL)


def make_files(root: Path, files: int, least: int, most: int) -> None:
    """Make so many, in folders; the same ones every time."""
    rng = random.Random(files)
    for number in range(files):
        folder = root / f"{number // _FOLDER:05}"
        if number % _FOLDER == 0:
            folder.mkdir(parents=True)
        content = rng.randbytes(rng.randint(least, most))
        (folder / f"file-{number:06}").write_bytes(content)


def _of_tree(
    stand: Stand, name: str, what: str, files: int, least: int = 0, most: int = 0
) -> Iterator[Figure]:
    contest = _Contest(stand, name)
    stand.make(make_files, contest.tree, files, least, most)
    script = os.environ.get(_MSRSYNC, "")
    contestants = {"huai": contest.huai, "rsync": contest.rsync}
    if script:
        contestants["msrsync"] = lambda: contest.msrsync(script)
    with contest.served():
        samples = take_turns(contestants, stand.rounds, stand.rest)
    ours, theirs = samples["huai"], samples["rsync"]
    what = f"first sync of {what} from a local path, {_STREAMS} streams"
    note = "" if script else _ABSENT
    yield Figure(what, wall(ours), "s", "rsync -a", wall(theirs), _FASTER, note)
    yield Figure(f"{what}, CPU", cpu(ours), "s", "rsync -a", cpu(theirs))
    if script:
        peer = f"msrsync -p {_STREAMS}"
        yield Figure(what, wall(ours), "s", peer, wall(samples["msrsync"]), _AHEAD)


class _Contest:
    """Copies of one tree, each in a folder of its own."""

    def __init__(self, stand: Stand, name: str) -> None:
        self.tree = stand.folder / f"local-{name}"
        self._stand = stand
        self._name = name
        self._made = 0
        self._port = 0

    @contextmanager
    def served(self) -> Iterator[None]:
        """Commit the tree, and serve the commit."""
        server = Program("huai-server", self.tree.with_suffix(".server"))
        server.run("add", self._name, self.tree, "--digest", "now")
        server.run("commit", self._name)
        with serving(server) as self._port:
            yield

    def huai(self) -> Spent:
        """`huai-client sync`."""
        dest = self._fresh()
        client = Program("huai-client", dest.with_suffix(".client"))
        url = f"http://127.0.0.1:{self._port}"
        client.run("add", self._name, url, dest, "--content-url", self.tree)
        with (client.root / "client.toml").open("a") as settings:
            settings.write(f"streams = {_STREAMS}\n")
        return spend(client.command("sync", self._name, "--quiet"))

    def rsync(self) -> Spent:
        """`rsync -a`."""
        return spend(["rsync", "-a", f"{self.tree}/", f"{self._fresh()}/"])

    def msrsync(self, script: str) -> Spent:
        """`msrsync -p`."""
        command = [sys.executable, script, "-p", str(_STREAMS), "-r", "-a"]
        return spend([*command, f"{self.tree}/", f"{self._fresh()}/"])

    def _fresh(self) -> Path:
        self._made += 1
        dest = self._stand.folder / f"local-{self._name}-{self._made}"
        dest.mkdir()
        return dest
