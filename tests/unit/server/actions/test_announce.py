"""The one file that the server writes into a tree."""

import os
from pathlib import Path

import pytest

from huai_schema.codec.announcement import FILE_NAME, Announcement
from huai_server.actions.announce import announce
from huai_server.scan.root import EmptyRootError
from huai_server.state.errors import StorageError

HERE = Announcement.of("https://mirror.example", "m")


def test_it_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert announce(tmp_path, HERE)
    path = tmp_path / FILE_NAME
    os.utime(path, (1, 1))
    assert not announce(tmp_path, HERE)
    assert path.stat().st_mtime == 1
    assert path.stat().st_mode & 0o777 == 0o644
    assert announce(tmp_path, Announcement.of("https://other.example", "m"))
    assert sorted(os.listdir(tmp_path)) == ["a", FILE_NAME]
    assert Announcement.parse(path.read_bytes()).url == "https://other.example"


def test_a_symlink_is_replaced_and_not_followed(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    tree.mkdir()
    outside.write_bytes(HERE.encode())
    (tree / FILE_NAME).symlink_to(outside)
    assert announce(tree, HERE)
    assert not (tree / FILE_NAME).is_symlink()


def test_what_is_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StorageError) as caught:
        announce(tmp_path, HERE)
    assert FILE_NAME in caught.value.message
    assert os.listdir(tmp_path) == [FILE_NAME]


def test_the_mount_point_of_a_disk_that_is_not_mounted_stays_empty(tmp_path: Path) -> None:
    with pytest.raises(EmptyRootError, match="the tree is empty"):
        announce(tmp_path, HERE)
    assert os.listdir(tmp_path) == []


def test_a_tree_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        announce(tmp_path / "gone", HERE)
