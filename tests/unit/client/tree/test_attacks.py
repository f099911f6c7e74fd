"""A symlink planted anywhere in a path: everything outside of DEST stays untouched."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from huai_client.tree import NotOursError, PathError
from huai_schema.paths import RelPath
from tests.support.local_trees import T0, Staged, at, directory, file, fingerprint, linked, symlink
from tests.support.single_tree import SingleTree

LEADER, VICTIM = file(b"leader", 0), file(b"victim", 8)
OPERATIONS: dict[str, Callable[[SingleTree, RelPath], object]] = {
    "make_directory": lambda tree, sub: tree.make_directory(at(sub + b"/new")),
    "make_directory over": lambda tree, sub: tree.make_directory(
        at(sub + b"/folder"), directory(sub + b"/folder", mode=0o700)
    ),
    "set_directory": lambda tree, sub: tree.set_directory(directory(sub + b"/folder", mode=0o700)),
    "remove_directory": lambda tree, sub: tree.remove_directory(at(sub + b"/empty")),
    "move out of it": lambda tree, sub: tree.move(at(sub + b"/folder"), at(b"taken")),
    "move into it": lambda tree, sub: tree.move(at(b"own"), at(sub + b"/own")),
    "publish": lambda tree, sub: tree.publish(
        Staged(tree.dest)([file(b"s")]), file(sub + b"/victim")
    ),
    "publish new": lambda tree, sub: tree.publish(
        Staged(tree.dest)([file(b"s")]), file(sub + b"/new")
    ),
    "link": lambda tree, sub: tree.link(linked(sub + b"/victim", LEADER)),
    "link to it": lambda tree, sub: tree.link(
        linked(b"stolen", VICTIM._replace(path=at(sub + b"/victim")))
    ),
    "symlink": lambda tree, sub: tree.symlink(symlink(sub + b"/victim")),
    "set_attributes": lambda tree, sub: tree.set_attributes(file(sub + b"/victim", mode=0o600)),
    "set_attributes of a symlink": lambda tree, sub: tree.set_attributes(
        symlink(sub + b"/pointer", mtime=1)
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
    (where / "empty").mkdir()
    settled(where / "victim", b"precious")
    (where / "pointer").symlink_to("victim")


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
    (dest / "own").mkdir()
    settled(dest / "leader", b"")
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


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_does_something_where_no_symlink_is(short_path: Path, name: str) -> None:
    # Without this, an operation that always fails would pass the test above.
    build(short_path / "sub")
    (short_path / "own").mkdir()
    settled(short_path / "leader", b"")
    Staged(short_path)([file(b"s")])
    before = fingerprint(short_path)
    with SingleTree(short_path) as tree:
        OPERATIONS[name](tree, at(b"sub"))
    assert fingerprint(short_path) != before


@pytest.mark.parametrize(
    "operation",
    [
        lambda tree: tree.set_directory(directory(b"x", mode=0o700)),
        lambda tree: tree.make_directory(at(b"x")),
        lambda tree: tree.remove_directory(at(b"x")),
        lambda tree: tree.set_attributes(file(b"x", mode=0o600)),
        lambda tree: tree.open_file(at(b"x")),
        lambda tree: tree.listing(at(b"x")),
        lambda tree: tree.move(at(b"x"), at(b"y")),
        lambda tree: tree.link(linked(b"y", VICTIM._replace(path=at(b"x")))),
    ],
)
@pytest.mark.parametrize("target", ["victim", "folder"])
def test_the_last_component_is_a_symlink(
    short_path: Path, operation: Callable[[SingleTree], object], target: str
) -> None:
    dest, outside = short_path / "dest", short_path / "outside"
    dest.mkdir()
    build(outside)
    (dest / "x").symlink_to(outside / target)
    before = fingerprint(outside)
    with SingleTree(dest) as tree, pytest.raises(PathError):
        operation(tree)
    assert fingerprint(outside) == before
    assert (dest / "x").is_symlink()


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


def test_replacing_a_symlink_replaces_the_link_itself(short_path: Path) -> None:
    dest, outside = short_path / "dest", short_path / "outside"
    dest.mkdir()
    build(outside)
    before = fingerprint(outside)
    with SingleTree(dest) as tree:
        for name in "abcd":
            (dest / name).symlink_to(outside / "victim")
        tree.publish(Staged(dest)([file(b"a")]), file(b"a"))
        tree.link(linked(b"b", file(b"a")))
        tree.symlink(symlink(b"c"))
        tree.remove(at(b"d"))
    assert fingerprint(outside) == before
    assert (dest / "a").is_file()
    assert not (dest / "d").is_symlink()
