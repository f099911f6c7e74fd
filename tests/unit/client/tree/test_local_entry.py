"""Entries of real trees, and the numbers of owners."""

import os
from pathlib import Path

import pytest

from huai_client.tree import View
from huai_client.tree.owners import Names, Owners
from huai_schema.entries import Directory, File, Symlink
from tests.support.local_entries import LocalEntry, stat_entry
from tests.support.local_trees import T0, at


def look(folder: Path, path: bytes) -> LocalEntry:
    with View(folder) as view:
        local = stat_entry(view, at(path))
    assert local is not None
    return local


def test_a_file(short_path: Path) -> None:
    (short_path / "f").write_bytes(b"abc")
    (short_path / "f").chmod(0o4751)
    os.utime(short_path / "f", ns=(1, T0))
    if os.geteuid() == 0:
        os.chown(short_path / "f", 54321, 0)
        (short_path / "f").chmod(0o4751)
    local = look(short_path, b"f")
    owner, group = Names().user(local.uid), Names().group(local.gid)
    assert local.entry == File(at(b"f"), 3, T0, 0o4751, owner, group)
    assert owner == (b"#54321" if os.geteuid() == 0 else owner)


def test_a_symlink_and_a_directory(short_path: Path) -> None:
    (short_path / "l").symlink_to(b"\xff\n".decode("utf-8", "surrogateescape"))
    (short_path / "d").mkdir(mode=0o700)
    link, folder = look(short_path, b"l").entry, look(short_path, b"d").entry
    assert isinstance(link, Symlink)
    assert link.target == b"\xff\n"
    assert isinstance(folder, Directory)
    assert folder.mode == 0o700


def test_only_a_file_of_this_size_and_time_is_there(short_path: Path) -> None:
    (short_path / "f").write_bytes(b"abc")
    os.utime(short_path / "f", ns=(1, T0))
    (short_path / "l").symlink_to("f")
    os.mkfifo(short_path / "p")
    with View(short_path) as view:
        assert view.has_file(at(b"f"), 3, T0)
        assert not view.has_file(at(b"f"), 2, T0)
        assert not view.has_file(at(b"f"), 3, T0 + 1)
        for path in (b"none", b"none/below", b"f/below", b"l", b"l/f", b"p"):
            status = view.stat(at(path))
            size, mtime = (status.st_size, status.st_mtime_ns) if status else (3, T0)
            assert not view.has_file(at(path), size, mtime)


@pytest.mark.parametrize("name", [b"#4294967295", b"#-1", b"#", b"#x", b"nul\0"])
def test_numbers_that_are_none(name: bytes) -> None:
    owners = Owners()
    assert owners.user(name) is None
    assert owners.unknown == {name}
