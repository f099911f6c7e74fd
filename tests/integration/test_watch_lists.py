"""`huai-server watch`: a commit looks at what changed, and holds what a scan would find."""

import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from huai_program.locking import locked
from huai_schema.paths import RelPath
from huai_server.config.load import load
from huai_server.state.paths import module_places
from huai_server.store.repository import Repository
from tests.integration.test_watch import Watcher, nothing_is_left, watching
from tests.support.committing import NAME, run_server

ROUNDS = 6
STEPS = 60


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The state root of an upstream with a small tree."""
    tree = tmp_path / "tree"
    grow(tree)
    run_server(tmp_path / "state", "add", NAME, str(tree))
    return tmp_path / "state"


def grow(tree: Path) -> None:
    for name in ("a/b", "c", "d/e/f"):
        (tree / name).mkdir(parents=True)
        for number in range(3):
            (tree / name / f"file-{number}").write_text(f"{name} {number}")
    os.link(tree / "a/b/file-0", tree / "c/link")


@pytest.fixture
def tree(root: Path) -> Path:
    return Path(load(root).module(NAME).path)


def after(watcher: Watcher, change: Callable[[], object]) -> dict[str, Any]:
    """The commit that follows a change."""
    change()
    return watcher.next("commit")


def lists_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return the lists of a commit, which was made without a scan."""
    lists: dict[str, Any] = event["lists"]
    assert lists["scanned"] is None
    return lists


def is_committed(watcher: Watcher) -> None:
    """Wait until all changes are in a commit; a scan finds no difference."""
    mark = Path(load(watcher.root).module(NAME).path) / "mark"
    size = 1 + (mark.stat().st_size if mark.exists() else 0)
    mark.write_text("x" * size)
    while size_of_mark(watcher.root) != size:
        watcher.next("in_step")
    nothing_is_left(watcher.root)


def size_of_mark(root: Path) -> int | None:
    repository = Repository(module_places(root, NAME).repository)
    head = repository.head()
    assert head is not None
    entry = repository.snapshot(head)[1].entry(RelPath(b"mark"))
    return getattr(entry, "size", None)


def rewrite(path: Path) -> None:
    path.write_text("written again")


def replace_file_by_directory(tree: Path) -> None:
    (tree / "c/file-1").unlink()
    (tree / "c/file-1/x").mkdir(parents=True)
    rewrite(tree / "c/file-1/x/y")


def replace_directory_by_file(tree: Path) -> None:
    shutil.rmtree(tree / "d/e")
    rewrite(tree / "d/e")


def exchange_directories(tree: Path) -> None:
    (tree / "a").rename(tree / "x")
    (tree / "d").rename(tree / "a")
    (tree / "x").rename(tree / "d")


def make_two_names(tree: Path) -> None:
    rewrite(tree / "c/new")
    os.link(tree / "c/new", tree / "a/new")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file": lambda tree: rewrite(tree / "c/file-1"),
    "a file moved over another": lambda tree: (tree / "c/file-1").rename(tree / "d/e/f/file-2"),
    "a file that becomes a directory": replace_file_by_directory,
    "a directory that becomes a file": replace_directory_by_file,
    "a directory renamed inside": lambda tree: (tree / "d/e").rename(tree / "a/b/e"),
    "a directory renamed out": lambda tree: (tree / "d").rename(tree.parents[1] / "out"),
    "a directory renamed in": lambda tree: (tree.parents[1] / "in").rename(tree / "c/in"),
    "a directory deleted": lambda tree: shutil.rmtree(tree / "d"),
    "two directories that change places": exchange_directories,
    "the root": lambda tree: tree.parent.chmod(0o700),
    "a hardlinked file": lambda tree: rewrite(tree / "c/link"),
    "a hardlink that goes": lambda tree: (tree / "c/link").unlink(),
    "a file moved over a hardlink": lambda tree: (tree / "c/file-1").rename(tree / "c/link"),
    "a new file with two names": make_two_names,
}


def test_a_commit_is_made_without_a_scan(root: Path, tree: Path, subtests: pytest.Subtests) -> None:
    """Each change is in a folder of its own."""
    grow(tree.with_name("in"))
    for name in CHANGES:
        grow(tree / name)
    with watching(root) as watcher:
        watcher.next("in_step")
        for name, change in CHANGES.items():
            with subtests.test(name):
                event = after(watcher, partial(change, tree / name))
                assert event["changed"]
                assert lists_of(event)["paths"] > 0
        is_committed(watcher)


def test_a_new_name_of_an_old_file_takes_a_scan(root: Path, tree: Path) -> None:
    """Its other name is unknown."""
    with watching(root) as watcher:
        watcher.next("in_step")
        event = after(watcher, lambda: os.link(tree / "d/e/f/file-0", tree / "c/new"))
        assert "more names than are known" in event["lists"]["scanned"]
        is_committed(watcher)
        event = after(watcher, lambda: rewrite(tree / "c/new"))
        lists_of(event)
        is_committed(watcher)


@pytest.mark.parametrize("seed", range(2))
def test_bursts_of_random_changes(root: Path, tree: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    (tmp_path / "outside").mkdir()
    with watching(root) as watcher:
        watcher.next("in_step")
        for _ in range(ROUNDS):
            for number in range(STEPS):
                change_something(chance, tree, tmp_path / "outside", f"n{number % 9}")
            is_committed(watcher)


def change_something(chance: random.Random, tree: Path, outside: Path, name: str) -> None:
    """One change, if it can be made with what was chosen."""
    folders = [tree, *(path for path in tree.rglob("*") if path.is_dir())]
    files = [path for path in tree.rglob("*") if path.is_file() and path.name != "mark"]
    folder, to = chance.choice(folders), chance.choice(folders) / name
    file = chance.choice(files or [tree / name])
    away = chance.choice(list(outside.iterdir()) or [outside / name])
    changes: list[Callable[[], object]] = [
        to.mkdir,
        lambda: to.write_text(str(chance.random())),
        lambda: file.write_text(str(chance.random())),
        lambda: file.chmod(chance.choice([0o600, 0o644])),
        file.unlink,
        lambda: file.rename(to),
        lambda: os.link(file, to),
        lambda: to.symlink_to(name),
        lambda: os.utime(folder, (1, chance.randrange(1 << 30))),
        lambda: folder.rename(to),
        lambda: folder.rename(outside / name),
        lambda: away.rename(to),
        lambda: shutil.rmtree(folder),
    ]
    choice = chance.choice(changes)
    if folder == tree and choice in changes[-4:]:
        return
    try:
        choice()
    except OSError:  # it exists, is not a directory, or is below itself
        return


def test_what_changes_during_a_commit_is_in_the_next(root: Path, tree: Path) -> None:
    with watching(root) as watcher:
        watcher.next("in_step")
        with locked(module_places(root, NAME).lock):
            rewrite(tree / "c/file-1")
            watcher.next("behind")
            rewrite(tree / "d/e/f/file-1")
        is_committed(watcher)
        with (root / "server.toml").open("a") as config:
            config.write('digest = "off"\n')
        for name in ("one", "two"):
            rewrite(tree / name)
            assert watcher.next("commit")["lists"] is None, "another configuration takes scans"


def test_the_paths_of_a_commit_that_failed_are_in_the_next(root: Path, tree: Path) -> None:
    with watching(root, "--delay", "0.2", "--at-most", "1") as watcher:
        watcher.next("in_step")
        with locked(module_places(root, NAME).lock):
            rewrite(tree / "c/file-1")
            assert watcher.next("error")["code"] == 43
        lists_of(watcher.next("commit"))
        is_committed(watcher)
