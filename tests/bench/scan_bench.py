"""Reading a whole tree and committing it the first time, compared with find and rsync.

The commit is a whole process, from start to durable; the scanner alone is shown to tell
where its time goes.
"""

import sys
from collections.abc import Iterator
from functools import partial

from tests.bench.figures import Figure, Goal
from tests.bench.programs import Program
from tests.bench.spending import Contestant, Spent, cpu, peak, spend, take_turns, wall
from tests.bench.stand import Stand

_SCANNER = """
import sys
from huai_server.scan import native
from huai_server.scan.types import ScanOptions
for each in native.scan_directories(sys.argv[1], ScanOptions(threads=int(sys.argv[2]))):
    pass
"""
_SCANNERS = {"scanner, 1 thread": 1, "scanner, 4 threads": 4}


def figures(stand: Stand) -> Iterator[Figure]:
    """Time of a first commit, its memory, and what the scanners alone need."""
    samples = take_turns(_contestants(stand), stand.rounds, stand.rest)
    commit, base = samples["commit"], samples["find"]
    title = "full scan + first commit"
    twice = Goal(2, "≤ 2 x find", ratio=True)
    yield Figure(title, wall(commit), "s", "find -printf", wall(base), twice)
    yield Figure(f"{title}, CPU", cpu(commit), "s", "find -printf", cpu(base))
    listing = samples["rsync"]
    yield Figure(title, wall(commit), "s", "rsync -r --list-only", wall(listing))
    memory = Goal(400 << 20, "< 400 MiB at 1 million")
    yield Figure(f"{title}, peak memory", peak(commit), "B", goal=memory)
    for name in _SCANNERS:
        yield Figure(f"{name} alone", wall(samples[name]), "s", "find -printf", wall(base))


def _contestants(stand: Stand) -> dict[str, Contestant]:
    tree = str(stand.tree)
    contestants = {
        "commit": partial(_first_commit, stand),
        "find": partial(spend, ["find", tree, "-printf", "%P %s %T@ %m %U %G\\n"]),
        "rsync": partial(spend, ["rsync", "-r", "--list-only", f"{tree}/"]),
    }
    for name, threads in _SCANNERS.items():
        scanner = [sys.executable, "-c", _SCANNER, tree, str(threads)]
        contestants[name] = partial(spend, scanner)
    return dict(contestants)


def _first_commit(stand: Stand) -> Spent:
    """Return the module of a tree that was never committed."""
    server = Program("huai-server", stand.folder / "first")
    server.run("add", "first", stand.tree, "--digest", "off")
    spent = spend(server.command("commit", "first"))
    server.run("remove", "first", "--purge")
    return spent
