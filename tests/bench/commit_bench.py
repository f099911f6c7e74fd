"""Committing again: nothing changed, and half a percent of the entries changed.

What find needs for the same tree says how much of it is the scan.
"""

from collections.abc import Iterator

from tests.bench.figures import Figure
from tests.bench.spending import Spent, peak, spend, take_turns, wall
from tests.bench.stand import Stand


def figures(stand: Stand) -> Iterator[Figure]:
    """A second commit, and one after a churn, without and with digests."""
    assert stand.modules
    find = ["find", str(stand.tree), "-printf", "%P %s %T@ %m %U %G\\n"]

    def commit(module: str) -> Spent:
        return spend(stand.server.command("commit", module))

    again = take_turns(
        {
            "plain": lambda: commit("plain"),
            "digests": lambda: commit("digests"),
            "find": lambda: spend(find),
        },
        stand.rounds,
        stand.rest,
    )
    base = wall(again["find"])
    for module, what in (("plain", "without digests"), ("digests", "with digests")):
        name = f"commit, nothing changed, {what}"
        yield Figure(name, wall(again[module]), "s", "find -printf", base)
    changed: dict[str, list[Spent]] = {"plain": [], "digests": []}
    for _ in range(stand.rounds):
        stand.churn()
        stand.rest()
        for module, samples in changed.items():
            samples.append(commit(module))
    for module, what in (("plain", "without digests"), ("digests", "with digests")):
        name = f"commit, 0.5 % changed, {what}"
        yield Figure(name, wall(changed[module]), "s", "find -printf", base)
    name = "commit, 0.5 % changed, with digests, peak memory"
    yield Figure(name, peak(changed["digests"]), "B")
