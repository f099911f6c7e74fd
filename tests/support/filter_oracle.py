"""Filter rules as the real rsync applies them, by copies of small trees."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from huai_client.filters import Rules
from huai_schema.paths import RelPath, ancestors, path_order

Tree: TypeAlias = Mapping[RelPath, bool]
"""Paths, each with whether it is a directory; all directories above a path are in it too."""


def tree_of(*paths: bytes) -> dict[RelPath, bool]:
    """The files and, ended by a slash, directories at `paths`, with all that is above them."""
    tree: dict[RelPath, bool] = {}
    for path in paths:
        plain = RelPath(path.rstrip(b"/"))
        tree[plain] = path.endswith(b"/")
        tree.update(dict.fromkeys(ancestors(plain)[:-1], True))
    return tree


def selected(tree: Tree, rules: Rules) -> set[RelPath]:
    """The part of `tree` that huai mirrors."""
    return {path for path, directory in tree.items() if rules.reaches(path, directory=directory)}


def left_over(source: Tree, target: Tree, rules: Rules) -> set[RelPath]:
    """Return the paths that stay when `source` is copied onto `target` under the rules.

    What is below a protected directory that is to go stays, and so does a directory that holds
    anything protected.
    """
    chosen = selected(source, rules)
    surplus = {path: directory for path, directory in target.items() if path not in chosen}
    protected: set[RelPath] = set()
    for path, directory in surplus.items():
        above = [each for each in ancestors(path) if each in surplus]
        stays = rules.protects(path, directory=directory)
        if stays or any(rules.protects(each, directory=True) for each in above):
            protected.update((path, *above))
    return chosen | protected


def copied(tree: Tree, *options: bytes, onto: Tree | None = None) -> set[RelPath]:
    """Return the paths that rsync leaves at the target; `options` are more arguments."""
    with TemporaryDirectory(prefix="huai-filter-") as name:
        source, target = Path(name, "source"), Path(name, "target")
        _make(source, tree)
        _make(target, onto or {})
        # Warnings that a directory is not empty are part of what is asked for.
        command = [b"rsync", b"-r", *options, b"%b/" % bytes(source), b"%b/" % bytes(target)]
        subprocess.run(command, check=True, capture_output=True, timeout=60, env=_ENVIRONMENT)
        return set(_paths(os.fsencode(target)))


def options_of(rules: Iterable[bytes]) -> list[bytes]:
    """The rules as rsync takes them."""
    return [b"--filter=" + rule for rule in rules]


@contextmanager
def rule_file(text: bytes) -> Iterator[bytes]:
    """The name of a file that holds `text`."""
    with TemporaryDirectory(prefix="huai-rules-") as name:
        path = Path(name, "rules")
        path.write_bytes(text)
        yield bytes(path)


_ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


def _make(top: Path, tree: Tree) -> None:
    top.mkdir()
    for path in sorted(tree, key=path_order):
        place = top / os.fsdecode(path)
        if tree[path]:
            place.mkdir()
        else:
            place.touch()


def _paths(top: bytes) -> Iterator[RelPath]:
    for folder, directories, files in os.walk(top):
        for name in directories + files:
            yield RelPath(os.path.relpath(os.path.join(folder, name), top))
