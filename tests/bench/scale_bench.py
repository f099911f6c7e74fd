"""The cost of a tree of any size on both ends: run it with several `--entries` and compare.

Files are empty before they change, so that a commit with digests reads nothing but metadata.  A
change is about 2,000 files, however large the tree is.  What happens once in a mirror's life is
measured once.
"""

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Self

from tests.bench import trees
from tests.bench.figures import Figure, Goal
from tests.bench.programs import Program
from tests.bench.spending import Spent, cpu, peak, wall
from tests.bench.stand import Stand

if TYPE_CHECKING:
    from tests.bench.spending import Contestant

CHANGES = 2000
COMMIT, SYNC = "huai-server commit", "huai-client sync"
RSYNC, FIND = "rsync -aH --delete", "find -printf"
_ENTRY_SECONDS = 20e-6

Samples = dict[str, list[Spent]]
"""The runs of each command."""


def figures(stand: Stand) -> Iterator[Figure]:
    """Wall clock, CPU time of all processes and memory of each step, compared with a peer's."""
    with MirroredTree(stand, "large", stand.entries) as mirror:
        find = [mirror.find()]
        goal = Goal(_ENTRY_SECONDS * stand.entries, f"≤ {_ENTRY_SECONDS * 1e6:.0f} µs an entry")
        yield from _rows("first commit", [mirror.first_commit], FIND, find, goal)
        same = mirror.measure(0)
        rsync = same[RSYNC]
        yield from _rows("fetch of all metadata, adoption", [mirror.adoption], RSYNC, rsync[:1])
        yield from _rows("commit, nothing changed", same[COMMIT], FIND, same[FIND])
        yield from _rows("sync, nothing new", same[SYNC], RSYNC, rsync)
        share, title = CHANGES / stand.entries, f"of {CHANGES:,} scattered changes"
        changed = mirror.measure(share)
        yield from _rows(f"commit {title}", changed[COMMIT], FIND, changed[FIND])
        yield from _rows(f"sync {title}", changed[SYNC], RSYNC, changed[RSYNC])
        mirror.change(share)
        yield from _rows(f"plan {title}", [mirror.run("plan")], RSYNC, changed[RSYNC][:1])
        mirror.run("sync")
        yield from _rows("verify without content", [mirror.run("verify")], FIND, find)


class MirroredTree:
    """A tree of empty files as a module, a copy of it for huai and one for rsync."""

    def __init__(self, stand: Stand, module: str, entries: int) -> None:
        self._stand = stand
        self._module = module
        self._seed = 0
        self._tree = stand.folder / module
        stand.make(trees.make_tree, self._tree, entries)
        self._ours, self._theirs = (
            stand.copy(f"{module}-{name}", self._tree) for name in ("huai", "rsync")
        )
        stand.server.run("add", module, self._tree, "--digest", "now")
        self.first_commit = self._commit()
        self._client = Program("huai-client", stand.folder / f"{module}-client")
        with stand.counted():
            self._daemon = stand.rsync_daemon(module, self._tree)
            url = f"http://127.0.0.1:{stand.server_port}"
        self._client.run("add", module, url, self._ours, "--content-url", self._daemon)
        self.adoption = self.run("sync")

    def __enter__(self) -> Self:
        """Everything is made already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the trees."""
        subprocess.run(["rm", "-rf", self._tree, self._ours, self._theirs], check=True)

    def measure(self, share: float) -> Samples:
        """Change a share of the files in each round; run huai, rsync and find by turns."""
        samples: Samples = {COMMIT: [], SYNC: [], RSYNC: [], FIND: []}
        runs: list[tuple[str, Contestant]] = [
            (SYNC, partial(self.run, "sync")),
            (RSYNC, self._rsync),
            (FIND, self.find),
        ]
        for number in range(self._stand.rounds):
            samples[COMMIT].append(self.change(share))
            for name, run in runs if number % 2 == 0 else reversed(runs):
                os.sync()
                self._stand.rest()
                samples[name].append(run())
        return samples

    def change(self, share: float) -> Spent:
        """Rewrite a share of the files, and commit."""
        self._seed += 1
        if share:
            self._stand.make(trees.rewrite_share, self._tree, share, self._seed)
        os.sync()
        self._stand.rest()
        return self._commit()

    def run(self, command: str) -> Spent:
        """Run a command of huai-client."""
        return self._stand.spend(self._client.command(command, self._module))

    def find(self) -> Spent:
        """Read the tree as a scan has to."""
        form = "%P %s %T@ %m %U %G\\n"
        return self._stand.spend(["find", str(self._tree), "-printf", form])

    def _rsync(self) -> Spent:
        return self._stand.spend([*RSYNC.split(), f"{self._daemon}/", f"{self._theirs}/"])

    def _commit(self) -> Spent:
        return self._stand.spend(self._stand.server.command("commit", self._module))


def _rows(
    title: str, ours: list[Spent], peer: str, theirs: list[Spent], goal: Goal | None = None
) -> Iterator[Figure]:
    rounds = len(ours)
    yield Figure(title, wall(ours), "s", peer, wall(theirs), rounds=rounds)
    yield Figure(f"{title}, CPU", cpu(ours), "s", peer, cpu(theirs), goal, rounds=rounds)
    yield Figure(f"{title}, peak memory", peak(ours), "B", peer, peak(theirs), rounds=rounds)
