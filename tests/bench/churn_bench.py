"""A sync after half a percent changed, compared with `rsync -a --delete` from the same daemon.

Two parts.  Before content flows: for huai the time until its first rsync is about to start
(the `transfer-started` line of --json); for rsync, which lists and transfers at once, the time
that `rsync -an --delete` of the same step takes, since it sends everything but content.  The
rest: what is left of the whole run.
"""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from tests.bench.figures import Figure, Goal
from tests.bench.spending import spend
from tests.bench.stand import Stand


class Parts(NamedTuple):
    """Seconds of one run."""

    before: float
    total: float
    first: float
    """Until the first file's name came out of rsync."""
    cpu: float


def figures(stand: Stand) -> Iterator[Figure]:
    """Before content flows, the rest, the whole."""
    assert stand.client
    stand.copy("theirs")
    entries: list[int] = []
    ours: list[Parts] = []
    theirs: list[Parts] = []
    for number in range(stand.rounds):
        entries.append(stand.churn().total)
        stand.commit("digests")
        stand.rest()
        turns = [(ours, _huai), (theirs, _rsync)]
        for parts, turn in turns if number % 2 == 0 else reversed(turns):
            parts.append(turn(stand))
    peer = "rsync -a --delete"
    first = median(parts.first for parts in theirs)
    note = (
        f"{median(entries):,.0f} entries changed; rsync: as long as `rsync -an --delete` of the "
        f"same step takes; in the real run its first file comes after {first:.2f} s, and it goes "
        "on listing between the files"
    )
    goal = Goal(0.1, "10 times faster", ratio=True)
    yield Figure(
        "sync, 0.5 % changed, before content flows",
        median(parts.before for parts in ours),
        "s",
        peer,
        median(parts.before for parts in theirs),
        goal,
        note,
    )
    rest = [median(parts.total - parts.before for parts in all_) for all_ in (ours, theirs)]
    yield Figure("sync, 0.5 % changed, the rest", rest[0], "s", peer, rest[1])
    totals = [median(parts.total for parts in all_) for all_ in (ours, theirs)]
    yield Figure("sync, 0.5 % changed, whole", totals[0], "s", peer, totals[1])
    cpu = [median(parts.cpu for parts in all_) for all_ in (ours, theirs)]
    yield Figure("sync, 0.5 % changed, client's CPU", cpu[0], "s", peer, cpu[1])


def _huai(stand: Stand) -> Parts:
    command = stand.client.command("sync", "digests", "--json")
    spent = spend(command, until=b'"transfer-started"')
    return Parts(spent.first, spent.wall, spent.first, spent.cpu)


def _rsync(stand: Stand) -> Parts:
    where = [f"{stand.daemon}/", f"{stand.folder / 'theirs'}/"]
    listing = spend(["rsync", "-an", "--delete", *where])
    spent = spend(["rsync", "-a", "--delete", "-i", "--outbuf=L", *where], until=b">f")
    return Parts(min(listing.wall, spent.wall), spent.wall, spent.first, spent.cpu)
