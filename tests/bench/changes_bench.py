"""Syncs after changes that reach very many entries, compared with `rsync -a --delete`.

One change follows the other on the same tree, so there is one round.  A sync without content goes
first on both sides: what the last change left in memory is written by then.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench import changes
from tests.bench.figures import Figure, Goal
from tests.bench.spending import spend
from tests.bench.stand import Stand

Change = Callable[[Path], None]

ROWS: list[tuple[str, Change, float]] = [
    ("a release: a fifth of the tree is new", changes.release, 1.2),
    ("chmod of all files", changes.modes, 0.7),
    ("touch of all files", changes.times, 0.7),
    ("chown of everything", changes.owners, 0.7),
    ("two directories swapped", changes.swapping, 0.7),
    ("a large directory renamed, two files in it changed", changes.renaming, 0.1),
    ("half of the packages deleted", changes.deleting, 0.7),
]
_PEER = "rsync -a --delete"


def figures(stand: Stand) -> Iterator[Figure]:
    """Wall clock, CPU and memory of each."""
    client = stand.client
    theirs = stand.copy("theirs")
    rsync = [*_PEER.split(), f"{stand.daemon}/", f"{theirs}/"]
    for title, change, limit in ROWS:
        if change is changes.owners and os.geteuid() != 0:
            continue
        stand.change(change)
        entries = stand.commit("digests")
        os.sync()
        stand.rest()
        ours = spend(client.command("sync", "digests", "--quiet", "--max-delete", "100%"))
        os.sync()
        stand.rest()
        peer = spend(rsync)
        goal = Goal(limit, f"{limit} times", ratio=True)
        note = f"{entries:,} entries and directories moved; ours: {ours.peak >> 20} MiB at most"
        yield Figure(title, ours.wall, "s", _PEER, peer.wall, goal, note, 1)
        yield Figure(f"{title}, client's CPU", ours.cpu, "s", _PEER, peer.cpu, rounds=1)
