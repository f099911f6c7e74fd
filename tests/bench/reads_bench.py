"""Disk reads of the server for a sync with nothing new, compared with rsync's daemon.

Twice in a row: the first with everything dropped from memory, where huai-server looks up the
paths of its own state again; the second as any poll after that.
"""

from collections.abc import Callable, Iterator
from statistics import median

from tests.bench.disk_reads import DiskReads, NotCountedError, Reads, drop_caches
from tests.bench.figures import Figure, Goal
from tests.bench.spending import spend
from tests.bench.stand import Stand, show_progress


def figures(stand: Stand) -> Iterator[Figure]:
    """Operations and bytes; nothing if this machine cannot count them."""
    client, dest = stand.client, stand.folder / "ours"
    server, daemon = stand.server_reads, stand.daemon_reads
    if server is None or daemon is None:
        return
    stand.commit("digests")
    client.run("sync", "digests", "--quiet")
    peer = "rsync -an --delete"
    rsync = [*peer.split(), f"{stand.daemon}/", f"{dest}/"]
    try:
        ours = _counted(stand, server, lambda: client.run("sync", "digests", "--quiet"))
        theirs = _counted(stand, daemon, lambda: spend(rsync))
    except NotCountedError as reason:
        show_progress(f"disk reads are not counted: {reason}")
        return
    title = "disk reads of the server, nothing new"
    note = "it looks up the paths of its own state; nothing of the tree, nor of its metadata"
    cold, warm = (Figure(f"{title}, {how}", 0, "", peer) for how in ("all cold", "the next"))
    yield cold._replace(ours=ours[0].operations, theirs=theirs[0].operations, note=note)
    size = f"{cold.title}, bytes"
    yield cold._replace(title=size, ours=ours[0].size, unit="B", theirs=theirs[0].size)
    goal = Goal(0, "0")
    yield warm._replace(ours=ours[1].operations, theirs=theirs[1].operations, goal=goal)


def _counted(stand: Stand, group: DiskReads, work: Callable[[], object]) -> tuple[Reads, Reads]:
    """The medians of what the group read, with nothing in memory and at once again."""
    rounds = [_cold_and_next(group, work) for _ in range(stand.rounds)]
    return _median([cold for cold, _ in rounds]), _median([warm for _, warm in rounds])


def _cold_and_next(group: DiskReads, work: Callable[[], object]) -> tuple[Reads, Reads]:
    drop_caches()
    before = group.now()
    work()
    between = group.now()
    work()
    return between.since(before), group.now().since(between)


def _median(samples: list[Reads]) -> Reads:
    operations = median(reads.operations for reads in samples)
    return Reads(int(operations), int(median(reads.size for reads in samples)))
