"""Removing a directory with everything below it, on a real file system."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_native import _native
from tests.support.unprivileged import run_unprivileged


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield handle
    os.close(handle)


def test_everything_goes_and_nothing_else(tmp_path: Path, folder: int) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "stays").write_text("x")
    top = tmp_path / "top"
    for name in ("empty", "full/deeper", "full/other"):
        (top / name).mkdir(parents=True)
    (top / "full/deeper/file").write_text("x")
    (top / "file").write_text("x")
    (top / "link").symlink_to(outside)
    (top / "full/link").symlink_to("../../outside")
    os.mkfifo(top / "full/fifo")
    os.link(outside / "stays", top / "full/hardlink")
    _native.remove_all(folder, b"top")
    assert os.listdir(tmp_path) == ["outside"]
    assert (outside / "stays").read_text() == "x"


def test_one_leaf_and_what_is_not_there(tmp_path: Path, folder: int) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("/")
    for name in (b"file", b"link", b"missing"):
        _native.remove_all(folder, name)
    assert os.listdir(tmp_path) == []
    assert os.path.isdir("/")


def test_a_chain_longer_than_any_path_and_than_the_limit_of_handles(
    tmp_path: Path, folder: int
) -> None:
    current = os.dup(folder)
    for _ in range(3000):
        os.mkdir("d" * 20, dir_fd=current)
        below = os.open("d" * 20, os.O_RDONLY | os.O_DIRECTORY, dir_fd=current)
        os.close(current)
        current = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=current))
    os.close(current)
    _native.remove_all(folder, b"d" * 20)
    assert os.listdir(tmp_path) == []


def refused(folder: Path) -> None:
    (folder / "top/closed").mkdir(parents=True)
    (folder / "top/closed/file").write_text("x")
    folder.chmod(0o500)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with pytest.raises(PermissionError) as caught:
        _native.remove_all(handle, b"top")
    os.close(handle)
    assert caught.value.errno == errno.EACCES
    assert caught.value.filename == b"top"
    folder.chmod(0o700)


def test_what_may_not_be_removed_is_an_error_and_stays(short_path: Path) -> None:
    run_unprivileged(refused, short_path)
    assert (short_path / "top/closed/file").read_text() == "x"
