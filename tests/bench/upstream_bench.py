"""A commit from a list of 1,500 changed entries, beside the whole scan and beside find.

Each is a whole process, from start to durable; a commit from an empty list is what start-up costs.
A case says where the changed files lie.
"""

import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.bench import trees
from tests.bench.figures import Figure, Goal
from tests.bench.spending import Spent, peak, spend, wall
from tests.bench.stand import Stand

_CHANGED = 1500
_MODULE = "plain"
_FIND = "%P %s %T@ %m %U %G\\n"


class Case(NamedTuple):
    """Where the files lie that change."""

    name: str
    what: str
    choose: Callable[[list[str], random.Random], list[str]]


def _neighbours(files: list[str], rng: random.Random) -> list[str]:
    begin = rng.randrange(max(1, len(files) - _CHANGED))
    return files[begin : begin + _CHANGED]


def _anywhere(files: list[str], rng: random.Random) -> list[str]:
    return rng.sample(files, min(_CHANGED, len(files)))


_CASES = (
    Case("release", "of neighbouring packages", _neighbours),
    Case("scattered", "all over the tree", _anywhere),
)


def figures(stand: Stand) -> Iterator[Figure]:
    """Time and memory of a commit from a list; then of a scan that finds nothing more."""
    assert stand.modules
    goal = Goal(0.15, "< 0.15 s")
    list_file = stand.folder / "list"
    list_file.write_bytes(b"")
    start = [_listed(stand, list_file) for _ in range(stand.rounds)]
    yield Figure("commit from an empty list: start-up", wall(start), "s")
    for number, case in enumerate(_CASES):
        if stand.cases and case.name not in stand.cases:
            continue
        samples: dict[str, list[Spent]] = {"list": [], "scan": [], "find": []}
        for seed in range(stand.rounds):
            stand.change(partial(_change, case.choose, 1000 * number + seed, list_file))
            stand.rest()
            samples["list"].append(_listed(stand, list_file))
            stand.rest()
            samples["scan"].append(spend(stand.server.command("commit", _MODULE)))
            stand.rest()
            samples["find"].append(spend(["find", str(stand.tree), "-printf", _FIND]))
        ours = wall(samples["list"])
        what = f"commit of {_CHANGED:,} changed files {case.what}, from a list"
        yield Figure(what, ours, "s", "whole scan", wall(samples["scan"]), goal)
        yield Figure(what, ours, "s", "find -printf", wall(samples["find"]))
        yield Figure(f"{what}, less start-up", max(0.0, ours - wall(start)), "s", goal=goal)
        memory = peak(samples["list"])
        yield Figure(f"{what}, peak memory", memory, "B", "whole scan", peak(samples["scan"]))


def _listed(stand: Stand, list_file: Path) -> Spent:
    return spend(stand.server.command("commit", _MODULE, "--changes", list_file))


def _change(
    choose: Callable[[list[str], random.Random], list[str]], seed: int, list_file: Path, root: Path
) -> None:
    """Write some files anew, each by a rename, and say which."""
    rng = random.Random(seed)
    files = trees.regular_files(root)
    lines = []
    for path in choose(files, rng):
        trees.rewrite(path, rng)
        lines.append(f">f.st...... {path[len(str(root)) + 1 :]}\n")
    list_file.write_text("".join(lines), encoding=sys.getfilesystemencoding())
