"""A day in the life of a mirror: half a percent of its files change, and a folder is renamed.

Changes come in clusters, as they do where a release adds and removes files of a few folders.
Always the same for the same tree.
"""

import os
import random
import shutil
from pathlib import Path
from typing import NamedTuple

from tests.demo.tree import walk

_SHARE = 0.005
_CLUSTER = 8
"""The number of files of one folder that change together."""
_SMALLEST, _LARGEST = 200, 3000
"""The number of entries of the renamed folder."""
_SOME_TIME = 1_600_000_000_123_456_789


class Churn(NamedTuple):
    """The counts of changed entries."""

    new: int = 0
    changed: int = 0
    touched: int = 0
    deleted: int = 0
    renamed: int = 0

    def __str__(self) -> str:
        """Describe the changes for people."""
        return (
            f"{self.new} new, {self.changed} changed, {self.touched} touched, {self.deleted} "
            f"deleted, a folder of {self.renamed} entries renamed"
        )


def churn(tree: Path, entries: int) -> Churn:
    """Change half a percent of a tree that has `entries` entries."""
    top = os.fsencode(tree)
    renamed = _rename(top)
    chance = random.Random(5)
    changes = max(20, round(entries * _SHARE))
    counts = {"new": 0, "changed": 0, "touched": 0, "deleted": 0}
    for path in _clusters(top, chance)[:changes]:
        kind = chance.choices(list(counts), weights=(30, 35, 15, 20))[0]
        counts[kind] += 1
        _CHANGES[kind](path)
    return Churn(**counts, renamed=renamed)


def _add(path: bytes) -> None:
    """Write a new version next to the old one, with mostly equal content."""
    shutil.copyfile(path, _beside(path, b".new"))
    with open(_beside(path, b".new"), "ab") as file:
        file.write(b"one more line\n")


def _change(path: bytes) -> None:
    """Replace a file by rename, like update programs."""
    _add(path)
    os.replace(_beside(path, b".new"), path)


def _touch(path: bytes) -> None:
    os.utime(path, ns=(_SOME_TIME, _SOME_TIME), follow_symlinks=False)


_CHANGES = {"new": _add, "changed": _change, "touched": _touch, "deleted": os.unlink}


def _beside(path: bytes, ending: bytes) -> bytes:
    folder, name = os.path.split(path)
    return os.path.join(folder, name[:200] + ending)


def _clusters(top: bytes, chance: random.Random) -> list[bytes]:
    """Return regular files without hardlinks, a few of each folder, folders in random order."""
    folders = []
    for folder, _, names in walk(top):
        paths = [os.path.join(folder, name) for name in names]
        plain = [path for path in paths if not os.path.islink(path) and os.stat(path).st_nlink == 1]
        if plain:
            folders.append(chance.sample(plain, min(_CLUSTER, len(plain))))
    chance.shuffle(folders)
    return [path for paths in folders for path in paths]


def _rename(top: bytes) -> int:
    """Rename a folder of medium size; return the number of its entries."""
    sizes: dict[bytes, int] = {}
    for folder, _, names in sorted(walk(top), reverse=True):
        sizes[folder] = sizes.get(folder, 1) + len(names)
        if folder != top:
            above = os.path.dirname(folder)
            sizes[above] = sizes.get(above, 1) + sizes[folder]
    fitting = [(size, path) for path, size in sizes.items() if _SMALLEST < size < _LARGEST]
    size, path = min(fitting) if fitting else max((s, p) for p, s in sizes.items() if p != top)
    os.rename(path, path + b"-2.0")
    return size
