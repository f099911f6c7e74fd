"""A moved directory that leaves a symlink behind, on any kind of file system."""

import errno
from pathlib import Path

import pytest

from huai_client.tree import PathError
from tests.support.local_trees import at, symlink
from tests.support.single_tree import SingleTree
from tests.support.system_calls import supervise

FORWARD = symlink(b"x/old", b"../new")
REFUSALS = pytest.mark.parametrize("refusal", [None, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP])
"""Errors of renameat2(2) where two names cannot be exchanged."""


@pytest.fixture
def dest(short_path: Path) -> Path:
    """Make a folder with `x/old`, which is to move."""
    (short_path / "x/old/in").mkdir(parents=True)
    (short_path / "x/old/in/f").touch()
    return short_path


def moved(dest: Path, refusal: int | None) -> object:
    """Return why it was not moved, or ""."""

    def work() -> str:
        with SingleTree(dest) as tree:
            try:
                tree.move(at(b"x/old"), at(b"new"), FORWARD)
            except PathError as error:
                return error.reason
        return ""

    return supervise(("rename by flags",), work, lambda _: refusal).result


@REFUSALS
def test_it_is_found_under_both_names(dest: Path, refusal: int | None) -> None:
    assert moved(dest, refusal) == ""
    assert (dest / "new/in/f").exists()
    assert not (dest / "new").is_symlink()
    assert (dest / "x/old").readlink() == Path("../new")
    assert (dest / "x/old").lstat().st_mtime_ns == FORWARD.mtime
    assert (dest / "x/old/in/f").exists()


@REFUSALS
def test_nothing_is_replaced(dest: Path, refusal: int | None) -> None:
    (dest / "new").mkdir()
    assert moved(dest, refusal) == "the path exists already"
    assert (dest / "x/old/in/f").exists()
    assert not (dest / "x/old").is_symlink()


def test_the_kernel_exchanges_two_names(dest: Path) -> None:
    with SingleTree(dest) as tree:
        calls = supervise(
            ("rename by flags", "rename", "unlink"),
            lambda: tree.move(at(b"x/old"), at(b"new"), FORWARD),
            lambda _: None,
        ).calls
    # First the symlink from the staging area, then both names at once.
    assert [call.name for call in calls] == ["rename", "rename by flags"]
