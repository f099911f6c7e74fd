"""Commits from lists in one directory of a million files; `--entries` is not heeded."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.bench import trees
from tests.bench.figures import Figure
from tests.bench.stand import Stand
from tests.bench.upstream.changes import CHANGED, Listed, anywhere, rewrite

_MODULE = "crowd"
_FILES = 1_000_000


def figures(stand: Stand) -> Iterator[Figure]:
    """Rewrite one file, add one, and rewrite many at once."""
    tree = stand.folder / _MODULE
    stand.make(trees.make_crowd, tree, _FILES, 0)
    stand.server.run("add", _MODULE, tree)
    stand.server.run("commit", _MODULE)
    listed = Listed(stand, _MODULE, tree)
    where = f"in a directory of {_FILES:,}, from a list"
    yield from listed.compared(f"commit of one changed file {where}", partial(rewrite, anywhere, 1))
    yield from listed.compared(f"commit of one new file {where}", add)
    many = partial(rewrite, anywhere, CHANGED)
    yield from listed.compared(f"commit of {CHANGED:,} changed files {where}", many)


def add(root: Path, seed: int, list_file: Path) -> None:
    """Put one more file there."""
    name = f"crowd/new-{seed}-{random.Random(seed).getrandbits(32):x}"
    (root / name).write_text(name)
    list_file.write_text(f">f+++++++++ {name}\n")
