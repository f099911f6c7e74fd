"""A first sync of real small files, beside `rsync -aH` from the same daemon.

The files are this machine's own, of at most 64 KiB. Every round makes a fresh copy and deletes
none: a large tree that was just deleted makes ext4 slow for seconds.
"""

import os
from collections.abc import Iterator

from tests.bench.figures import Figure, Goal
from tests.bench.spending import cpu, peak, spend, take_turns, wall
from tests.bench.stand import Stand

_MODULE = "real"


def figures(stand: Stand) -> Iterator[Figure]:
    """The whole process, its CPU time, its memory."""
    client, daemon, files = stand.first_client(_MODULE)
    numbers = {"huai": 0, "rsync": 0}

    def fresh(name: str) -> str:
        numbers[name] += 1
        dest = stand.folder / f"first-{name}-{numbers[name]}"
        dest.mkdir()
        return os.fspath(dest)

    def huai() -> list[str]:
        dest = fresh("huai")
        name = f"{_MODULE}{numbers['huai']}"
        url = f"http://127.0.0.1:{stand.port}"
        client.run(*("add", name, url, dest, "--upstream-name", _MODULE, "--content-url", daemon))
        return client.command("sync", name, "--quiet")

    samples = take_turns(
        {
            "huai": lambda: spend(huai()),
            "rsync": lambda: spend(["rsync", "-aH", f"{daemon}/", fresh("rsync")]),
        },
        stand.rounds,
        stand.rest,
    )
    ours, theirs = samples["huai"], samples["rsync"]
    peer, what = "rsync -aH", f"first sync of {files:,} real files"
    goal = Goal(1.0, "as fast", ratio=True) if stand.line else Goal(1.1, "1.1 times", ratio=True)
    yield Figure(what, wall(ours), "s", peer, wall(theirs), goal)
    yield Figure(f"{what}, client's CPU", cpu(ours), "s", peer, cpu(theirs))
    yield Figure(f"{what}, client's memory", peak(ours), "B", peer, peak(theirs))
