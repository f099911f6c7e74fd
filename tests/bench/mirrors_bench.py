"""One large file from one mirror of a limited rate, and from three such mirrors at once.

Each mirror is an nginx that sends every connection so many bytes a second (`limit_rate`).  The
peer is aria2c with as many connections to each (`-x 4 -s N`), if it is installed, else curl
with its one connection to one mirror.  Ours includes metadata, proof and publishing.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from tests.bench.figures import Figure, Goal, show
from tests.bench.huge_bench import GIB, MIB, fill
from tests.bench.programs import Program, serving
from tests.bench.spending import peak, spend, take_turns, wall
from tests.bench.stand import Stand, show_progress
from tests.support.nginx import nginx

_MIRRORS = 3
_RATE = 10 * MIB
"""Bytes a second of each connection."""
_CONNECTIONS = 4
"""To a mirror, ours and the peer's."""
_NAME = "image"


def figures(stand: Stand) -> Iterator[Figure]:
    """Times of one mirror and of three, and how they compare."""
    folder = stand.folder / "mirrors"
    tree = folder / "huge"
    tree.mkdir(parents=True)
    size = min(GIB, shutil.disk_usage(folder).free // 4 // MIB * MIB)
    show_progress(f"making a file of {show(size, 'B')}")
    fill(size, tree / _NAME)
    server, client = (Program(f"huai-{side}", folder / side) for side in ("server", "client"))
    server.run("add", "huge", tree)
    server.run("commit", "huge")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        metadata = f"http://127.0.0.1:{stack.enter_context(serving(server)).port}"
        limited = f"limit_rate {_RATE};"
        urls = [
            f"{stack.enter_context(nginx(folder, location=limited)).url}/huge"
            for _ in range(_MIRRORS)
        ]
        numbers = iter(range(10**6))

        def ours(count: int) -> list[str]:
            name = f"huge-{next(numbers)}"
            dest = folder / name
            dest.mkdir()
            content = [part for url in urls[:count] for part in ("--content-url", url)]
            client.run("add", name, metadata, dest, "--upstream-name", "huge", *content)
            return client.command("sync", name, "--quiet")

        def peers(count: int) -> list[str]:
            target = folder / f"peer-{next(numbers)}"
            target.mkdir()
            file_urls = [f"{url}/{_NAME}" for url in urls[:count]]
            return _peer(file_urls, os.fspath(target))

        contestants = {
            (who, count): partial(lambda make, count: spend(make(count)), make, count)
            for who, make in (("ours", ours), ("peer", peers))
            for count in (1, _MIRRORS)
        }
        names = {f"{who} {count}": run for (who, count), run in contestants.items()}
        samples = take_turns(names, stand.rounds, stand.rest)
    peer = "aria2c" if shutil.which("aria2c") else "curl"
    for count in (1, _MIRRORS):
        title = f"{show(size, 'B')} from {count} of {show(_RATE, 'B')}/s a connection"
        yield Figure(
            title, wall(samples[f"ours {count}"]), "s", peer, wall(samples[f"peer {count}"])
        )
    several, one = samples[f"ours {_MIRRORS}"], samples["ours 1"]
    yield Figure(
        f"{_MIRRORS} mirrors at once, compared with one",
        wall(several),
        "s",
        "huai, one mirror",
        wall(one),
        Goal(1 / 2.5, "2.5 times as fast", ratio=True),
    )
    yield Figure("memory of that", peak(several), "B", "huai, one mirror", peak(one))


def _peer(urls: list[str], folder: str) -> list[str]:
    if shutil.which("aria2c"):
        count = _CONNECTIONS * len(urls)  # all mirrors are of one host, by which it counts
        several = [f"--max-connection-per-server={count}", f"--dir={folder}"]
        split = f"--split={count}"
        quiet = ["--quiet", "--file-allocation=none", "--no-conf"]
        return ["aria2c", *quiet, *several, split, "--min-split-size=8M", *urls]
    return ["curl", "--silent", "--fail", "--output", f"{folder}/{_NAME}", urls[0]]
