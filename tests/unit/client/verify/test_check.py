"""`verify`, and the comparison that it uses, on real trees."""

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
