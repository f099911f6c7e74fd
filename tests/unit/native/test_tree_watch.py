"""The engine's watch of a tree: which events are seen, and which directories are watched."""

import errno
import os
import select
import shutil
from pathlib import Path

import pytest

from huai_native._native import TreeWatch


def watch(top: Path, *exclude: str, one_file_system: bool = True, most: int = 1000) -> TreeWatch:
    patterns = [text.encode() for text in exclude]
    return TreeWatch(os.fsencode(top), patterns, one_file_system=one_file_system, most=most)


def is_readable(watched: TreeWatch) -> bool:
    return bool(select.select([watched], [], [], 0)[0])


def events(watched: TreeWatch) -> int:
    """How many were seen; nothing was lost."""
    count, lost, is_gone = watched.read()
    assert not lost
    assert not is_gone
    return count


def count_paths(watched: TreeWatch) -> int:
    """How many paths are to be looked at after all that happened."""
    events(watched)
    listed = watched.take()
    assert listed is not None
    return listed[1]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "a" / "b" / "c").mkdir(parents=True)
    (folder / "a" / "file").write_text("1")
    (folder / "d").mkdir()
    return folder


def test_every_directory_is_watched(top: Path) -> None:
    watched = watch(top)
    assert (watched.directories, watched.unwatched) == (5, None)
    assert not is_readable(watched)
    assert events(watched) == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda top: (top / "a" / "b" / "c" / "new").write_text("1"),
        lambda top: (top / "a" / "file").write_text("2"),
        lambda top: (top / "a" / "file").unlink(),
        lambda top: (top / "a" / "file").chmod(0o600),
        lambda top: (top / "a" / "file").rename(top / "d" / "file"),
        lambda top: os.utime(top / "a" / "file", (1, 1)),
        lambda top: os.utime(top, (1, 1)),
        lambda top: os.symlink("x", top / "d" / "link"),
        lambda top: os.link(top / "a" / "file", top / "d" / "hard"),
        lambda top: (top / "d").chmod(0o700),
        lambda top: (top / "odd\n\udcff").write_text("1"),
    ],
)
def test_a_change_is_seen(top: Path, change: object) -> None:
    watched = watch(top)
    assert callable(change)
    change(top)
    assert is_readable(watched)
    assert events(watched) > 0
    assert events(watched) == 0


def test_reading_a_tree_is_no_change(top: Path) -> None:
    watched = watch(top)
    (top / "a" / "file").read_text()
    list(top.rglob("*"))
    assert not is_readable(watched)


def test_new_directories_are_watched_with_what_they_hold(top: Path) -> None:
    watched = watch(top)
    (top / "new" / "x" / "y").mkdir(parents=True)
    assert events(watched) > 0
    assert watched.directories == 8
    (top / "new" / "x" / "y" / "file").write_text("1")
    assert events(watched) > 0


def test_a_tree_that_is_moved_in_is_watched(top: Path, tmp_path: Path) -> None:
    (tmp_path / "outside" / "x").mkdir(parents=True)
    watched = watch(top)
    (tmp_path / "outside").rename(top / "d" / "inside")
    assert events(watched) > 0
    (top / "d" / "inside" / "x" / "file").write_text("1")
    assert events(watched) > 0


def test_a_tree_that_is_moved_out_is_not(top: Path, tmp_path: Path) -> None:
    watched = watch(top)
    (top / "a").rename(tmp_path / "out")
    assert events(watched) > 0
    assert watched.directories == 2
    (tmp_path / "out" / "b" / "file").write_text("1")
    assert events(watched) == 0


def test_a_directory_that_is_renamed_stays_watched(top: Path) -> None:
    watched = watch(top)
    for number in range(20):
        (top / ("a" if number % 2 == 0 else "z")).rename(top / ("z" if number % 2 == 0 else "a"))
    (top / "a").rename(top / "d" / "z")
    assert events(watched) > 0
    assert watched.directories == 5
    (top / "d" / "z" / "b" / "c" / "file").write_text("1")
    assert events(watched) > 0
    shutil.rmtree(top / "d")
    assert events(watched) > 0
    assert watched.directories == 1


def test_two_directories_that_change_places_stay_watched(top: Path) -> None:
    watched = watch(top)
    (top / "a").rename(top / "x")
    (top / "d").rename(top / "a")
    (top / "x").rename(top / "d")
    assert events(watched) > 0
    assert watched.directories == 5
    for place in ("a", "d/b/c"):
        (top / place / "file").write_text("1")
        assert events(watched) > 0


def test_what_is_left_out_is_no_change(top: Path) -> None:
    (top / ".~tmp~" / "huai").mkdir(parents=True)
    (top / "incoming").mkdir()
    watched = watch(top, "/incoming", "*.lock")
    assert watched.directories == 5
    (top / ".~tmp~" / "huai" / "file").write_text("1")
    (top / "incoming" / "file").write_text("1")
    (top / "d" / "x.lock").write_text("1")
    assert events(watched) == 0
    (top / "a" / "incoming").mkdir()
    assert events(watched) > 0


def test_symlinks_are_not_followed(top: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    os.symlink(tmp_path / "outside", top / "link")
    watched = watch(top)
    (tmp_path / "outside" / "file").write_text("1")
    assert events(watched) == 0
    (top / "a" / "b" / "c").rmdir()
    os.symlink(tmp_path / "outside", top / "a" / "b" / "c")
    assert events(watched) > 0
    (tmp_path / "outside" / "more").write_text("1")
    assert events(watched) == 0


def test_a_root_that_goes(top: Path) -> None:
    watched = watch(top)
    top.rename(top.with_name("elsewhere"))
    assert watched.read()[2]


def test_a_root_that_is_a_symlink(top: Path, tmp_path: Path) -> None:
    os.symlink(top, tmp_path / "link")
    watched = watch(tmp_path / "link")
    (top / "d" / "file").write_text("1")
    assert events(watched) > 0


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        watch(tmp_path / "none")
    assert caught.value.errno == errno.ENOENT


def test_what_is_given_back_is_taken_with_the_next(top: Path) -> None:
    watched = watch(top)
    watched.take()
    (top / "d" / "one").write_text("1")
    events(watched)
    listed = watched.take()
    assert listed is not None
    watched.give_back(listed[0])
    (top / "d" / "two").write_text("1")
    assert count_paths(watched) == 2
    watched.give_back(None)
    assert watched.take() is None


def test_what_is_added_is_taken(top: Path) -> None:
    watched = watch(top)
    watched.take()
    watched.add([b"d", b"d/x", b"a"])
    assert count_paths(watched) == 2


def test_a_directory_in_which_something_was_left_out_is_taken_and_no_event(top: Path) -> None:
    watched = watch(top, "*.lock")
    watched.take()
    (top / "d" / "x.lock").write_text("1")
    assert events(watched) == 0
    assert count_paths(watched) == 1
