"""Comparing a tree that is there with metadata: adopting it, and verifying it without content.

Nothing differs, so nothing is fetched: what is measured is the comparison, and for an adoption the
whole way from an empty state, metadata from the server included.
"""

from collections.abc import Iterator
from functools import partial

from tests.bench.figures import Figure, Goal
from tests.bench.programs import Program
from tests.bench.spending import Spent, cpu, peak, spend, take_turns, wall
from tests.bench.stand import Stand


def figures(stand: Stand) -> Iterator[Figure]:
    """Time of an adoption beside `rsync -an`, and of `verify` beside find; memory of both."""
    assert stand.modules
    stand.commit("plain")  # other benchmarks change the tree
    dest = str(stand.copy("adopted"))
    client = Program("huai-client", stand.folder / "adopting")
    url = f"http://127.0.0.1:{stand.port}"
    client.run("add", "plain", url, dest, "--content-url", stand.daemon)
    contestants = {
        "adopt": partial(_adopt, client, url, dest, stand.daemon),
        "rsync": partial(spend, ["rsync", "-an", "--delete", f"{stand.tree}/", f"{dest}/"]),
        "verify": partial(spend, client.command("verify", "plain")),
        "find": partial(spend, ["find", dest, "-printf", "%P %s %T@ %m %U %G\\n"]),
    }
    samples = take_turns(contestants, stand.rounds, stand.rest)
    for name, what, peer, goal in (
        ("adopt", "adopt a tree", "rsync -an", Goal(0.7, "≤ 0.7 x rsync", ratio=True)),
        ("verify", "verify without content", "find -printf", Goal(1.5, "≤ 1.5 x find", ratio=True)),
    ):
        ours, base = samples[name], samples[peer.split()[0]]
        yield Figure(what, wall(ours), "s", peer, wall(base), goal)
        yield Figure(f"{what}, CPU", cpu(ours), "s", peer, cpu(base))
        yield Figure(f"{what}, peak memory", peak(ours), "B")


def _adopt(client: Program, url: str, dest: str, content: str) -> Spent:
    """By a client that knows nothing of the module yet."""
    client.run("remove", "plain")
    client.run("add", "plain", url, dest, "--content-url", content)
    return spend(client.command("sync", "plain", "--quiet"))
