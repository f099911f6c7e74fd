"""A sync that finds nothing new, whole process, compared with `rsync -an --delete`."""

import shutil
from collections.abc import Iterator

from tests.bench.figures import Figure, Goal
from tests.bench.spending import cpu, spend, take_turns, wall
from tests.bench.stand import Stand
from tests.support.counting_proxy import counting


def figures(stand: Stand) -> Iterator[Figure]:
    """Time, CPU time, requests."""
    client, dest = stand.client, stand.folder / "ours"
    stand.commit("digests")
    client.run("sync", "digests", "--quiet")
    peer = "rsync -an --delete"
    rsync = [*peer.split(), f"{stand.daemon}/", f"{dest}/"]
    samples = take_turns(
        {
            "huai": lambda: spend(client.command("sync", "digests")),
            "rsync": lambda: spend(rsync),
        },
        stand.rounds,
        stand.rest,
    )
    ours, theirs = samples["huai"], samples["rsync"]
    goal = Goal(0.2, "< 0.2 s")
    yield Figure("sync, nothing new", wall(ours), "s", peer, wall(theirs), goal)
    yield Figure("sync, nothing new, client's CPU", cpu(ours), "s", peer, cpu(theirs))
    requests, size = _requests(stand)
    yield Figure("sync, nothing new, requests", requests, "", goal=Goal(1, "1"))
    yield Figure("sync, nothing new, on the wire", size, "B")


def _requests(stand: Stand) -> tuple[int, int]:
    """Requests and bytes either way of a sync that asks through a proxy that counts."""
    with counting(f"http://127.0.0.1:{stand.port}") as counted:
        root = stand.folder / "client-proxy"
        shutil.copytree(stand.client.root, root)
        config = root / "client.toml"
        config.write_text(config.read_text().replace(f"http://127.0.0.1:{stand.port}", counted.url))
        stand.client._replace(root=root).run("sync", "digests", "--quiet")
    return len(counted.requests), counted.sent_bytes + counted.received
