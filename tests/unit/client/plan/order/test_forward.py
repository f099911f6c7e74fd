"""A directory that moves and leaves a symlink behind, on file systems that can and cannot."""

import os
from pathlib import Path

import pytest

from huai_client.tree import PathError, Tree, system
from tests.support.local_trees import at, symlink

FORWARD = symlink(b"x/old", b"../new")


@pytest.fixture(params=[True, False], ids=["exchange", "no exchange"])
def moved(
    request: pytest.FixtureRequest, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder `x/old` that is to move, where two names can or cannot be exchanged."""
    if not request.param:
        monkeypatch.setattr(system, "exchange", lambda *_: False)
    (short_path / "x/old/in").mkdir(parents=True)
    (short_path / "x/old/in/f").touch()
    return short_path


def test_it_is_found_under_both_names(moved: Path) -> None:
    with Tree(moved) as tree:
        tree.move(at(b"x/old"), at(b"new"), FORWARD)
    assert (moved / "new/in/f").exists()
    assert not (moved / "new").is_symlink()
    assert (moved / "x/old").readlink() == Path("../new")
    assert (moved / "x/old").lstat().st_mtime_ns == FORWARD.mtime
    assert (moved / "x/old/in/f").exists()


def test_nothing_is_replaced(moved: Path) -> None:
    (moved / "new").mkdir()
    with Tree(moved) as tree, pytest.raises(PathError, match="already"):
        tree.move(at(b"x/old"), at(b"new"), FORWARD)
    assert (moved / "x/old/in/f").exists()
    assert not (moved / "x/old").is_symlink()


def test_the_kernel_exchanges_two_names(short_path: Path) -> None:
    (short_path / "a").mkdir()
    (short_path / "b").symlink_to("a")
    handle = os.open(short_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert system.exchange(handle, b"a", handle, b"b")
    finally:
        os.close(handle)
    assert (short_path / "a").is_symlink()
    assert (short_path / "b").is_dir()
