"""Commits of trees of two extreme shapes: mostly directories, and all in one directory.

275,000 entries in 100,000 directories, and a million in one; `--entries` is not heeded.
"""

from collections.abc import Iterator

from tests.bench import trees
from tests.bench.figures import Figure, Goal
from tests.bench.spending import Spent, peak, spend, take_turns, wall
from tests.bench.stand import CHURN, MODULES, Stand

_DIRECTORIES, _ENTRIES = 100_000, 275_000
_CROWD = 1_000_000
_CROWD_MEMORY = Goal(100e6, "< 100 MB")


def figures(stand: Stand) -> Iterator[Figure]:
    """A second commit of the one, and the memory of commits of the other."""
    yield from _directories(stand)
    yield from _crowd(stand)


def _directories(stand: Stand) -> Iterator[Figure]:
    tree = stand.folder / "directories"
    stand.make(trees.make_directories, tree, _DIRECTORIES, _ENTRIES)
    find = ["find", str(tree), "-printf", "%P %s %T@ %m %U %G\\n"]
    stand.server.run("add", "directories", tree, "--digest", "now")
    stand.server.run("commit", "directories")
    again = take_turns(
        {"commit": lambda: _commit(stand, "directories"), "find": lambda: spend(find)},
        stand.rounds,
        stand.rest,
    )
    name = f"commit, nothing changed, {_ENTRIES:,} entries in {_DIRECTORIES:,} directories"
    yield Figure(name, wall(again["commit"]), "s", "find -printf", wall(again["find"]))


def _crowd(stand: Stand) -> Iterator[Figure]:
    tree = stand.folder / "crowd"
    stand.make(trees.make_crowd, tree, _CROWD)
    for module, digest in MODULES.items():
        stand.server.run("add", f"crowd-{module}", tree, "--digest", digest)
    for what in ("first", "nothing changed", "0.5 % changed"):
        if what == "0.5 % changed":
            stand.make(trees.change_crowd, tree, CHURN)
        for module in MODULES:
            spent = _commit(stand, f"crowd-{module}")
            name = f"commit, {_CROWD:,} entries in one directory, {module}, {what}"
            yield Figure(f"{name}, CPU", spent.cpu, "s")
            yield Figure(f"{name}, peak memory", peak([spent]), "B", goal=_CROWD_MEMORY)


def _commit(stand: Stand, module: str) -> Spent:
    return spend(stand.server.command("commit", module))
