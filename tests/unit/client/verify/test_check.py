"""`verify`, and the comparison that it uses, on real trees."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.diff.candidate import Difference, DifferenceKind
from huai_client.publish.executor import execute
from huai_client.tree import View
from huai_schema.entries import Entry, File
from tests.support.comparing import verify
from tests.support.local_trees import (
    Staged,
    at,
    directory,
    file,
    in_order,
    linked,
    open_handles,
    plan_for,
    symlink,
)
from tests.support.single_tree import SingleTree
from tests.support.unprivileged import run_unprivileged

LEADER = file(b"a/leader", 2000)
WANTED = in_order(
    [
        directory(b""),
        directory(b"a"),
        directory(b"a/b"),
        directory(b"c"),
        LEADER,
        linked(b"a/b/also", LEADER),
        file(b"a/b/f", 3_000_000),
        file(b"e", 0),
        symlink(b"s"),
        *(file(b"c/%d" % number) for number in range(40)),
    ]
)


@pytest.fixture
def tree(short_path: Path) -> Iterator[SingleTree]:
    with SingleTree(short_path) as opened:
        report = execute(plan_for(opened, WANTED), opened, Staged(short_path), lambda *_: None)
        assert not report.problems
        yield opened


def check(
    tree: SingleTree, expected: list[Entry] = WANTED, *, content: bool = True
) -> list[Difference]:
    return sorted(verify(tree, expected, content=content))


def settle(tree: SingleTree, *paths: bytes) -> None:
    """Restore the times of directories after a test has changed their content."""
    for entry in WANTED:
        if entry.path in paths:
            tree.set_directory(directory(entry.path))


def test_an_equal_tree_has_no_differences(tree: SingleTree) -> None:
    assert check(tree) == []
    assert check(tree, content=False) == []


def test_extraneous_files_of_every_type(tree: SingleTree) -> None:
    (tree.dest / "a/new/deep").mkdir(parents=True)
    (tree.dest / "a/new/deep/f").touch()
    (tree.dest / "a/b/zz").symlink_to("x")
    os.mkfifo(tree.dest / "A")
    settle(tree, b"", b"a", b"a/b")
    assert check(tree) == [
        Difference(at(path), DifferenceKind.EXTRANEOUS)
        for path in (b"A", b"a/b/zz", b"a/new", b"a/new/deep", b"a/new/deep/f")
    ]


def test_what_differs(tree: SingleTree) -> None:
    (tree.dest / "e").write_bytes(b"1")
    (tree.dest / "c").chmod(0o700)
    (tree.dest / "a/leader").chmod(0o600)
    assert check(tree) == [
        Difference(at(b"a/b/also"), DifferenceKind.DIFFERS, ("mode",)),
        Difference(at(b"a/leader"), DifferenceKind.DIFFERS, ("mode",)),
        Difference(at(b"c"), DifferenceKind.DIFFERS, ("mode",)),
        Difference(at(b"e"), DifferenceKind.DIFFERS, ("mtime", "size")),
    ]


def test_content_changed_in_place_with_size_and_time_kept(tree: SingleTree) -> None:
    expected = {entry.path: entry for entry in WANTED}
    for name in ("a/b/f", "a/leader"):
        with (tree.dest / name).open("r+b") as out:
            out.seek(1999)
            out.write(b"\0")
        entry = expected[at(name.encode())]
        assert isinstance(entry, File)
        tree.set_attributes(entry)
    assert check(tree, content=False) == []
    assert check(tree) == [
        Difference(at(b"a/b/f"), DifferenceKind.DIFFERS, ("digest",)),
        Difference(at(b"a/leader"), DifferenceKind.DIFFERS, ("digest",)),
    ]


@pytest.mark.parametrize("kind", ["file", "symlink", "fifo"])
def test_a_leaf_where_a_directory_should_be(tree: SingleTree, kind: str) -> None:
    (tree.dest / "c").rename(tree.dest / ".~tmp~" / "c")
    if kind == "file":
        (tree.dest / "c").touch()
    elif kind == "symlink":
        (tree.dest / "c").symlink_to(".~tmp~/c")
    else:
        os.mkfifo(tree.dest / "c")
    settle(tree, b"")
    differences = check(tree)
    assert differences[0] == Difference(at(b"c"), DifferenceKind.DIFFERS, ("type",))
    assert {item.kind for item in differences[1:]} == {DifferenceKind.MISSING}
    assert len(differences) == 41


def test_two_files_that_should_not_be_one(tree: SingleTree) -> None:
    (tree.dest / "c/1").unlink()
    os.link(tree.dest / "c/0", tree.dest / "c/1")
    settle(tree, b"c")
    assert check(tree) == [Difference(at(b"c/1"), DifferenceKind.DIFFERS, ("digest", "link"))]


def test_a_hardlink_from_outside_is_nobodys_business(tree: SingleTree) -> None:
    os.link(tree.dest / "e", tree.dest / ".~tmp~" / "e")
    assert check(tree) == []


def test_stopping_early_closes_every_file(tree: SingleTree) -> None:
    (tree.dest / "c/0").chmod(0o600)
    before = open_handles()
    differences = verify(tree, WANTED, content=True)
    next(differences)
    differences.close()  # type: ignore[attr-defined]
    tree.listing(at(b""))
    # The tree keeps the directories that it opened: /, a, a/b, c.
    assert open_handles() <= before + 4


def steps_with_unreadable_paths(folder: Path) -> None:
    with SingleTree(folder) as tree:
        execute(plan_for(tree, WANTED), tree, Staged(folder), lambda *_: None)
    (folder / "a/b").chmod(0)
    (folder / "e").chmod(0)
    with View(folder, owners=False) as view:
        differences = sorted(verify(view, WANTED, content=True))
    assert [(item.path, item.kind, item.attributes) for item in differences] == [
        (b"a/b", DifferenceKind.DIFFERS, ("mode",)),
        (b"a/b", DifferenceKind.UNREADABLE, ()),
        (b"e", DifferenceKind.UNREADABLE, ()),
    ]


def test_what_is_below_an_unreadable_directory_is_not_missing(short_path: Path) -> None:
    run_unprivileged(steps_with_unreadable_paths, short_path)
