"""Plain rsync clients: what they cost a daemon on the tree itself, and on an attr tree.

All with a cold cache, by the same rsync and the same configuration.  Reads that remain are
rsync's own program coming back from the disk: a round in which it is in memory shows that.
"""

import subprocess
from collections.abc import Iterator
from statistics import median

from tests.bench.disk_reads import NotCountedError, drop_caches
from tests.bench.fallback_stand import (
    KINDS,
    SMALL,
    Cost,
    Served,
    memory_file_system,
    served,
    upstream,
)
from tests.bench.figures import Figure, Goal
from tests.bench.spending import spend
from tests.bench.stand import Stand, show_progress

_CLIENTS = 50


def figures(stand: Stand) -> Iterator[Figure]:
    """Operations, bytes, CPU time of the daemon, time of the client."""
    try:
        with (
            memory_file_system(stand.folder / "attr") as folder,
            upstream(stand, folder) as server,
            served(stand, server) as daemon,
        ):
            yield from _listing(stand, daemon)
            yield from _many(daemon)
            yield from _sync(stand, daemon)
    except NotCountedError as reason:
        show_progress(f"disk reads are not counted: {reason}")


def _listing(stand: Stand, daemon: Served) -> Iterator[Figure]:
    dest = stand.copy("listed")
    colds = {kind: [] for kind in KINDS}  # type: dict[str, list[tuple[Cost, float]]]
    warms = {kind: [] for kind in KINDS}  # type: dict[str, list[tuple[Cost, float]]]
    for _ in range(stand.rounds):
        for kind in KINDS:
            command = ["rsync", "-an", "--delete", f"{daemon.url}/{kind}/", f"{dest}/"]
            drop_caches()
            colds[kind].append(_measured(daemon, command))
            drop_caches()
            spend(["rsync", "-an", f"{daemon.url}/{SMALL}/", f"{dest}/"])
            warms[kind].append(_measured(daemon, command))
    for kind in KINDS[1:]:
        title = f"rsync -an, nothing to do, cold, {kind}"
        yield from _compared(title, colds[kind], colds["real"])
        left = _reads(f"{title}, rsync in memory", warms[kind], warms["real"])
        yield left._replace(goal=Goal(0, "0"))
    for kind in KINDS:
        command = ["rsync", "-an", "--delete", f"{daemon.url}/{kind}/", f"{dest}/"]
        warms[kind] = [_measured(daemon, command) for _ in range(stand.rounds + 1)][1:]
    for kind in KINDS[1:]:
        cpu, theirs = _cpu(warms[kind]), _cpu(warms["real"])
        goal = Goal(1.0, "1x", ratio=True)
        yield Figure(
            f"the same, warm, {kind}: CPU of the daemon", cpu, "s", "real tree", theirs, goal
        )


def _many(daemon: Served) -> Iterator[Figure]:
    """Many clients that list at once."""
    costs = {}
    for kind in KINDS[:2]:
        # Without a destination rsync lists; the client's own work is small then.
        listing = ["rsync", "-r", f"{daemon.url}/{kind}/"]
        script = f"for i in $(seq {_CLIENTS}); do {' '.join(listing)} > /dev/null & done; wait"
        drop_caches()
        costs[kind] = _measured(daemon, ["sh", "-c", script])
    ours, theirs = costs["sparse"], costs["real"]
    title = f"{_CLIENTS} clients list at once, cold, sparse"
    peer = "real tree"
    for measured, values, unit in (
        ("reads", (ours[0].reads.operations, theirs[0].reads.operations), ""),
        ("CPU of the daemon", (ours[0].cpu, theirs[0].cpu), "s"),
        ("until the last has ended", (ours[1], theirs[1]), "s"),
    ):
        yield Figure(f"{title}: {measured}", values[0], unit, peer, values[1], rounds=1)


def _sync(stand: Stand, daemon: Served) -> Iterator[Figure]:
    """A real one, after half a percent has changed."""
    dests = {kind: stand.copy(f"synced-{kind}") for kind in KINDS}
    spent = {kind: [] for kind in KINDS}  # type: dict[str, list[tuple[Cost, float]]]
    for _ in range(stand.rounds):
        stand.churn()
        daemon.commit()
        for kind in KINDS:
            drop_caches()
            command = ["rsync", "-a", "--delete", f"{daemon.url}/{kind}/", f"{dests[kind]}/"]
            spent[kind].append(_measured(daemon, command))
        for kind in KINDS:
            unlike = ["rsync", "-ani", "--delete", f"{stand.tree}/", f"{dests[kind]}/"]
            assert not subprocess.run(unlike, capture_output=True, check=True).stdout
    for kind in KINDS[1:]:
        yield from _compared(f"rsync -a, 0.5 % changed, cold, {kind}", spent[kind], spent["real"])


def _measured(daemon: Served, command: list[str]) -> tuple[Cost, float]:
    before = daemon.cost()
    wall = spend(command).wall
    after = daemon.cost()
    return Cost(after.reads.since(before.reads), after.cpu - before.cpu), wall


def _compared(
    title: str, ours: list[tuple[Cost, float]], theirs: list[tuple[Cost, float]]
) -> Iterator[Figure]:
    yield _reads(title, ours, theirs)
    size = [median(cost.reads.size for cost, _ in each) for each in (ours, theirs)]
    yield Figure(f"{title}: bytes read", size[0], "B", "real tree", size[1])
    yield Figure(f"{title}: CPU of the daemon", _cpu(ours), "s", "real tree", _cpu(theirs))
    walls = [median(wall for _, wall in each) for each in (ours, theirs)]
    yield Figure(f"{title}: time", walls[0], "s", "real tree", walls[1])


def _reads(title: str, ours: list[tuple[Cost, float]], theirs: list[tuple[Cost, float]]) -> Figure:
    counts = [median(cost.reads.operations for cost, _ in each) for each in (ours, theirs)]
    return Figure(f"{title}: reads", counts[0], "", "real tree", counts[1])


def _cpu(samples: list[tuple[Cost, float]]) -> float:
    return median(cost.cpu for cost, _ in samples)
