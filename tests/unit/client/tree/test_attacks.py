"""A symlink planted anywhere in a path: everything outside of DEST stays untouched."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from huai_client.tree import NotOursError, PathError
from huai_schema.paths import RelPath
from tests.support.local_trees import T0, Staged, at, file, fingerprint, linked, symlink
from tests.support.single_tree import SingleTree

VICTIM = file(b"victim", 8)
OPERATIONS: dict[str, Callable[[SingleTree, RelPath], object]] = {
    "make_directory": lambda tree, sub: tree.make_directory(at(sub + b"/new")),
    "move out of it": lambda tree, sub: tree.move(at(sub + b"/folder"), at(b"taken")),
    "publish new": lambda tree, sub: tree.publish(
        Staged(tree.dest)([file(b"s")]), file(sub + b"/new")
    ),
    "link to it": lambda tree, sub: tree.link(
        linked(b"stolen", VICTIM._replace(path=at(sub + b"/victim")))
    ),
    "remove": lambda tree, sub: tree.remove(at(sub + b"/victim")),
}


def settled(place: Path, data: bytes) -> None:
    """Make a file with the attributes that a hardlink needs of its leader."""
    place.write_bytes(data)
    place.chmod(0o644)
    os.utime(place, ns=(T0, T0))


def build(where: Path) -> None:
    (where / "folder" / "in").mkdir(parents=True)
    settled(where / "victim", b"precious")


@pytest.mark.parametrize("depth", [b"sub", b"sub/deeper"])
@pytest.mark.parametrize("opened_before", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_component_that_became_a_symlink(
    short_path: Path, name: str, depth: bytes, *, opened_before: bool
) -> None:
    dest, outside = short_path / "dest", short_path / "outside"
    build(outside)
    build(outside / "deeper")
    build(dest / "sub")
    build(dest / "sub" / "deeper")
    before = fingerprint(outside)
    with SingleTree(dest) as tree:
        if opened_before:
            tree.listing(at(depth))
        (dest / "sub").rename(dest / "aside")
        (dest / "sub").symlink_to(outside)
        with suppress(PathError):
            OPERATIONS[name](tree, at(depth))
    assert fingerprint(outside) == before
    assert not (dest / "taken").exists() or opened_before
    assert not (dest / "stolen").exists() or opened_before


@pytest.mark.parametrize("planted", [".~tmp~", ".~tmp~/huai"])
def test_a_symlink_planted_as_the_staging_folder(short_path: Path, planted: str) -> None:
    dest, outside = short_path / "dest", short_path / "outside"
    build(outside)
    (outside / "huai").mkdir()
    (dest / planted).parent.mkdir(parents=True)
    (dest / planted).symlink_to(outside)
    before = fingerprint(outside)
    with SingleTree(dest) as tree, pytest.raises(NotOursError, match="not a directory"):
        tree.symlink(symlink(b"l"))
    assert fingerprint(outside) == before
