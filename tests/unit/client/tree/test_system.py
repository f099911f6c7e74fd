"""The system calls beside Python's own, and what stands in for them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from huai_client.tree.system import rename_after_look, rename_to_nothing, sync_file_system

Rename = Callable[[int, bytes, int, bytes], None]
BOTH = pytest.mark.parametrize("rename", [rename_to_nothing, rename_after_look])


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    yield opened
    os.close(opened)


@BOTH
def test_rename(rename: Rename, handle: int, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    rename(handle, b"a", handle, b"b\xff")
    assert [os.fsencode(path.name) for path in tmp_path.iterdir()] == [b"b\xff"]


@BOTH
def test_rename_over_something(rename: Rename, handle: int, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        rename(handle, b"a", handle, b"b")
    assert (tmp_path / "b").is_symlink()


@BOTH
def test_rename_of_nothing(rename: Rename, handle: int) -> None:
    with pytest.raises(FileNotFoundError):
        rename(handle, b"a", handle, b"b")


def test_sync_needs_a_real_handle(tmp_path: Path) -> None:
    opened = os.open(tmp_path, os.O_RDONLY)
    sync_file_system(opened)
    os.close(opened)
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_file_system(opened)
