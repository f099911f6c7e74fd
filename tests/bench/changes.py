"""Changes that an administrator makes to a tree, each to very many entries at once."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.bench.trees import make_tree

_DAYS = 1_770_000_000_000_000_000
_MODE, _OWNER = 0o664, 33
_RELEASE = 0.19
"""Add a new release of a distribution next to the old ones."""


def release(root: Path) -> None:
    """A new directory, with a fifth of the entries that are there."""
    entries = sum(1 for _ in _below(root))
    make_tree(root / "release", int(entries * _RELEASE), seed=77, size=100)


def modes(root: Path) -> None:
    """Change the modes of all entries except directories, as `chmod -R` does."""
    for entry in _leaves(root):
        os.chmod(entry.path, _MODE)


def times(root: Path) -> None:
    """`touch` of all files."""
    for entry in _leaves(root):
        os.utime(entry.path, ns=(_DAYS, _DAYS))


def owners(root: Path) -> None:
    """`chown -R`."""
    for entry in _below(root):
        os.chown(entry.path, _OWNER, _OWNER, follow_symlinks=False)


def renaming(root: Path) -> None:
    """A large directory gets another name, and two files in it other content."""
    os.rename(root / "pool" / "main", root / "pool" / "renamed")
    rng = random.Random(5)
    for entry in rng.sample([*_leaves(root / "pool" / "renamed")], 2):
        Path(entry.path).write_bytes(rng.randbytes(300))


def swapping(root: Path) -> None:
    """Two directories change places."""
    one, other, aside = (root / "pool" / name for name in ("contrib", "non-free", "aside"))
    os.rename(one, aside)
    os.rename(other, one)
    os.rename(aside, other)


def deleting(root: Path) -> None:
    """Half of the packages go."""
    for number, entry in enumerate(sorted(map(str, (root / "pool").glob("*/*/*")))):
        if number % 2:
            shutil.rmtree(entry)


def _below(root: Path) -> Iterator[os.DirEntry[str]]:
    waiting: list[str | os.DirEntry[str]] = [str(root)]
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            entries = list(listing)
        yield from entries
        waiting += (each for each in entries if each.is_dir(follow_symlinks=False))


def _leaves(root: Path) -> Iterator[os.DirEntry[str]]:
    return (each for each in _below(root) if each.is_file(follow_symlinks=False))
