"""The results of `stat_entry` on real trees."""

import os
from pathlib import Path

import pytest

from huai_client.tree import View
from huai_client.tree.owners import Owners
from huai_client.tree.view import LocalEntry, stat_entry
from tests.support.local_trees import at


def look(folder: Path, path: bytes) -> LocalEntry:
    with View(folder) as view:
        local = stat_entry(view, at(path))
    assert local is not None
    return local


def test_special_files_have_no_entry(short_path: Path) -> None:
    os.mkfifo(short_path / "p")
    assert look(short_path, b"p").entry is None


def test_nothing_there(short_path: Path) -> None:
    (short_path / "f").touch()
    (short_path / "l").symlink_to(".")
    with View(short_path) as view:
        for path in (b"none", b"none/below", b"f/below", b"l/f"):
            assert stat_entry(view, at(path)) is None


@pytest.mark.parametrize("name", [b"#4294967295", b"#-1", b"#", b"#x", b"nul\0"])
def test_numbers_that_are_none(name: bytes) -> None:
    owners = Owners()
    assert owners.user(name) is None
    assert owners.unknown == {name}
