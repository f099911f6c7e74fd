"""Commits of trees of two extreme shapes: mostly directories, and all in one directory.

275,000 entries in 100,000 directories, and a million in one; `--entries` is not heeded.
"""

from collections.abc import Iterator

from tests.bench import trees
from tests.bench.figures import Figure
from tests.bench.spending import Spent, peak, spend, take_turns, wall
from tests.bench.stand import Stand

_DIRECTORIES, _ENTRIES = 100_000, 275_000
_CROWD = 1_000_000


def figures(stand: Stand) -> Iterator[Figure]:
    """A second commit of the one, and the memory of both commits of the other."""
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
    stand.server.run("add", "crowd", tree, "--digest", "now")
    name = f"commit, {_CROWD:,} entries in one directory, peak memory"
    yield Figure(f"first {name}", peak([_commit(stand, "crowd")]), "B")
    yield Figure(f"second {name}", peak([_commit(stand, "crowd")]), "B")


def _commit(stand: Stand, module: str) -> Spent:
    return spend(stand.server.command("commit", module))
