"""The time from a write to its commit by `watch`, compared with a commit by hand.

A commit of a watcher looks at what changed, one by hand scans the tree: above the quiet time that
the watcher waits for, its own does not grow with the tree.  Also how long it takes to watch all
directories of the tree.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import IO, Any

from tests.bench.figures import Figure
from tests.bench.spending import spend, wall
from tests.bench.stand import Stand

DELAY = 0.1
"""Seconds without a change, after which the watcher commits."""


def figures(stand: Stand) -> Iterator[Figure]:
    """One file in a tree of the stand's size, again and again."""
    assert stand.modules
    by_hand = [spend(stand.server.command("commit", "plain")) for _ in range(stand.rounds)]
    waited = []
    began = time.perf_counter()
    with _watching(stand) as lines:
        directories = _next(lines, "watching")["directories"]
        begun = time.perf_counter() - began
        _next(lines, "in_step")
        for number in range(stand.rounds):
            stand.rest()
            started = time.perf_counter()
            (stand.tree / "watched").write_text(str(number))
            _next(lines, "in_step")
            waited.append(time.perf_counter() - started)
        (stand.tree / "watched").unlink()
    name = f"watch: from a write to its commit, {DELAY} s of which are quiet"
    yield Figure(name, median(waited), "s", "huai-server commit", wall(by_hand))
    yield Figure(f"watch: start, {directories:,} directories watched", begun, "s")


@contextmanager
def _watching(stand: Stand) -> Iterator[IO[str]]:
    """The lines of a watcher."""
    command = stand.server.command("watch", "plain", "--delay", str(DELAY), "--json")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.terminate()
        process.communicate()


def _next(lines: IO[str], kind: str) -> dict[str, Any]:
    for line in lines:
        event: dict[str, Any] = json.loads(line)
        if event["type"] == kind:
            return event
    raise RuntimeError(f"the watcher ended before {kind}")
