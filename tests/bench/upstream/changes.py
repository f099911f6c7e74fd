"""A commit from a list of 1,500 changed entries, compared with the whole scan and with find.

Each is a whole process, from start to durable; a commit from an empty list is what start-up costs.
Run it with several `--entries`: files are empty until they change, so millions of them take no room
but their inodes.
"""

import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from huai_server.commit.list_record import LIST_RECORD
from huai_server.state.paths import module_places
from tests.bench import trees
from tests.bench.figures import Figure, Goal
from tests.bench.spending import Spent, cpu, peak, spend, wall
from tests.bench.stand import Stand

CHANGED = 1500
Choose = Callable[[list[str], int, random.Random], list[str]]
"""So many of these files."""
Change = Callable[[Path, int, Path], None]
"""Changes a tree, otherwise for each number, and writes what it did to a file."""
_MODULE = "changes"
_FIND = ["-printf", "%P %s %T@ %m %U %G\\n"]
GOAL = Goal(0.15, "< 0.15 s")


def figures(stand: Stand) -> Iterator[Figure]:
    """Wall clock, CPU and memory; the scan finds nothing more than the list named."""
    tree = stand.folder / _MODULE
    stand.make(trees.make_tree, tree, stand.entries)
    listed = Listed(stand, _MODULE, tree)
    stand.server.run("add", _MODULE, tree)
    stand.server.run("commit", _MODULE)
    yield from listed.rows("commit from an empty list: start-up", nothing)
    for where, choose in (("side by side", neighbours), ("all over the tree", anywhere)):
        title = f"commit of {CHANGED:,} changed files {where}, from a list"
        yield from listed.compared(title, partial(rewrite, choose, CHANGED), GOAL)


def neighbours(files: list[str], count: int, rng: random.Random) -> list[str]:
    """Choose files of neighbouring packages."""
    begin = rng.randrange(max(1, len(files) - count))
    return files[begin : begin + count]


def anywhere(files: list[str], count: int, rng: random.Random) -> list[str]:
    """As many directories as there can be."""
    return rng.sample(files, min(count, len(files)))


def rewrite(choose: Choose, count: int, root: Path, seed: int, list_file: Path) -> None:
    """Rewrite so many files, each by a rename, and list them as rsync does."""
    rng = random.Random(seed)
    lines = []
    for path in choose(trees.regular_files(root), count, rng):
        trees.rewrite(path, rng)
        lines.append(f">f.st...... {path[len(str(root)) + 1 :]}\n")
    list_file.write_text("".join(lines), encoding=sys.getfilesystemencoding())


class Listed:
    """A module with a commit; each change is committed from the list that it leaves."""

    def __init__(self, stand: Stand, name: str, tree: Path) -> None:
        self._stand = stand
        self._name = name
        self._tree = tree
        self._list = stand.folder / f"{name}-list"
        self._changes = 0

    def rows(self, title: str, change: Change, goal: Goal | None = None) -> Iterator[Figure]:
        """A change, again and again."""
        samples = [self.change(change) for _ in range(self._stand.rounds)]
        yield Figure(title, wall(samples), "s", goal=goal)
        yield Figure(f"{title}, CPU", cpu(samples), "s")
        yield Figure(f"{title}, peak memory", peak(samples), "B")

    def compared(self, title: str, change: Change, goal: Goal | None = None) -> Iterator[Figure]:
        """A change, again and again: by its list, then by a scan of the whole tree, and find."""
        listed, scans, finds = [], [], []
        for _ in range(self._stand.rounds):
            listed.append(self.change(change))
            self._stand.rest()
            scans.append(spend(self._stand.server.command("commit", self._name)))
            self._stand.rest()
            finds.append(spend(["find", str(self._tree), *_FIND]))
        yield Figure(title, wall(listed), "s", "whole scan", wall(scans), goal)
        yield Figure(title, wall(listed), "s", "find -printf", wall(finds))
        yield Figure(f"{title}, CPU", cpu(listed), "s", "whole scan", cpu(scans))
        yield Figure(f"{title}, CPU", cpu(listed), "s", "find -printf", cpu(finds))
        yield Figure(f"{title}, peak memory", peak(listed), "B", "whole scan", peak(scans))

    def change(self, change: Change) -> Spent:
        """Change something, and commit it."""
        self._changes += 1
        self._stand.make(change, self._tree, self._changes, self._list)
        self._stand.rest()
        spent = spend(self._stand.server.command("commit", self._name, "--changes", self._list))
        record = LIST_RECORD.load(module_places(self._stand.server.root, self._name).lists)
        if record is None or not record.commits_by_lists:
            raise RuntimeError("the whole tree was scanned: that was not to be measured")
        return spent


def nothing(_root: Path, _seed: int, list_file: Path) -> None:
    """No change: the list is empty."""
    list_file.write_bytes(b"")
