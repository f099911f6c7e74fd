"""From a commit to the downstream that publishes it, by events, and what a subscriber costs.

One real downstream (`huai-client watch`), alone, next to others that only listen, and as a relay
for one on the third tier.  The moment of the commit is the time of the file of its branch.  A timer
that syncs every five minutes comes after 150 seconds on average: that is the peer, by arithmetic.
"""

import json
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from statistics import median, quantiles
from threading import Thread
from typing import Any

from tests.bench.figures import Figure, Goal
from tests.bench.programs import Program, serving
from tests.bench.stand import Stand
from tests.support.processes import end_process

MODULE = "pushed"
OTHERS = 500
COMMITS = 10
"""The commits of a round."""
_SECONDS = 60
_GRACE = 40
_TIMER = 150.0
_PEER = "a timer every 5 min"
_REQUEST = b"GET /api/v1/events HTTP/1.1\r\nHost: test\r\nUser-Agent: bench\r\n\r\n"

Lines = Queue[tuple[float, dict[str, Any]]]


def figures(stand: Stand) -> Iterator[Figure]:
    """A small module: what a sync costs by its tree, other figures say."""
    tree = stand.folder / MODULE
    tree.mkdir()
    (tree / "file").write_text("0")
    stand.server.run("add", MODULE, tree, "--serve-content")
    with ExitStack() as stack:
        port, process = stack.enter_context(serving(stand.server))
        url = f"http://127.0.0.1:{port}"
        stand.server.run("commit", MODULE)
        content = "--content-url", f"{url}/content/{MODULE}"
        first = Program("huai-client", stand.folder / "push-client")
        lines = stack.enter_context(_watching(first, url, *content))
        yield from _latencies(stand, tree, lines, "alone")
        before = _resident(process)
        for _ in range(OTHERS):
            _subscribe(stack, port)
        time.sleep(1)
        subscriber_bytes = (_resident(process) - before) / OTHERS
        goal = Goal(50_000, "< 50 kB")
        yield Figure(f"push: memory of a subscriber, of {OTHERS}", subscriber_bytes, "B", goal=goal)
        yield from _latencies(stand, tree, lines, f"next to {OTHERS} subscribers")
        # Last: until the end, no test reads the output of the second tier.
        relayed = stack.enter_context(_relaying(stand, first))
        yield from _latencies(stand, tree, relayed, "on the third tier")


def _latencies(stand: Stand, tree: Path, lines: Lines, where: str) -> Iterator[Figure]:
    announced, published = [], []
    branch = stand.server.root / "modules" / MODULE / "repository.git/refs/heads/main"
    for number in range(stand.rounds * COMMITS):
        time.sleep(random.uniform(0, 0.5))
        (tree / "file").write_text(f"{where} {number}")
        stand.commit(MODULE)
        committed = branch.stat().st_mtime
        announced.append(_next(lines, "told") - committed)
        published.append(_next(lines, "ended") - committed)
    for event, values in (("heard of", announced), ("published", published)):
        goal = Goal(1, "< 1 s") if event == "heard of" and "tier" not in where else None
        name = f"push: a commit is {event}, {where}"
        yield Figure(f"{name}, median", median(values), "s", _PEER, _TIMER, goal)
        yield Figure(f"{name}, 99 %", quantiles(values, n=100, method="inclusive")[98], "s")


@contextmanager
def _relaying(stand: Stand, first: Program) -> Iterator[Lines]:
    """The lines of a watcher below a server that hands on what `first` applied."""
    server = Program("huai-server", stand.folder / "push-relay")
    server.root.mkdir()
    with serving(server) as (port, _):
        url = f"http://127.0.0.1:{port}"
        content = "--serve-content", "--content-url", f"{url}/content/{MODULE}"
        server.run("add", MODULE, _dest(first), "--relay", first.root, *content)
        server.run("relay", MODULE, "--wait", "60")
        with _watching(Program("huai-client", stand.folder / "push-last"), url) as lines:
            yield lines


def _dest(client: Program) -> Path:
    return client.root.with_name(f"{client.root.name}-dest")


@contextmanager
def _watching(client: Program, url: str, *options: str) -> Iterator[Lines]:
    """The lines of a watcher whose first sync is over, each with when it came."""
    _dest(client).mkdir()
    client.run("add", MODULE, url, _dest(client), *options)
    client.run("sync", MODULE, "--quiet")
    with (client.root / "client.toml").open("a") as file:
        file.write('\n[watch]\nspread = "0"\n')
    lines: Lines = Queue()
    process = subprocess.Popen(client.command("watch", "--json"), stdout=subprocess.PIPE, text=True)

    def read() -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                lines.put((time.time(), json.loads(line)))

    reader = Thread(target=read)
    reader.start()
    try:
        _next(lines, "ended")
        yield lines
    finally:
        end_process(process, _GRACE)
        reader.join()


def _next(lines: Lines, kind: str) -> float:
    """When the next event of a kind came."""
    while True:
        moment, event = lines.get(timeout=_SECONDS)
        if event["type"] == kind:
            return moment


def _subscribe(stack: ExitStack, port: int) -> None:
    other = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=_SECONDS))
    other.sendall(_REQUEST)
    other.recv(1 << 16)


def _resident(process: int) -> int:
    """Bytes in memory."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])
