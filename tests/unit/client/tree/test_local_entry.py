"""What `stat_entry` and `differences` say of real trees."""

import os
import stat
from pathlib import Path

import pytest

from huai_client.tree import View
from huai_client.tree.local_entry import (
    LocalEntry,
    differences,
    differences_here,
    stat_entry,
)
from huai_client.tree.owners import Names, Owners
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import ROOT
from tests.support.local_trees import T0, at, file, symlink


def look(folder: Path, path: bytes) -> LocalEntry:
    with View(folder) as view:
        found = stat_entry(view, at(path))
    assert found is not None
    return found


def test_a_file(short_path: Path) -> None:
    (short_path / "f").write_bytes(b"abc")
    (short_path / "f").chmod(0o4751)
    os.utime(short_path / "f", ns=(1, T0))
    if os.geteuid() == 0:
        os.chown(short_path / "f", 54321, 0)
        (short_path / "f").chmod(0o4751)
    found = look(short_path, b"f")
    owner, group = Names().user(found.uid), Names().group(found.gid)
    assert found.entry == File(at(b"f"), 3, T0, 0o4751, owner, group)
    assert owner == (b"#54321" if os.geteuid() == 0 else owner)
    assert found.nlinks == 1


def test_a_symlink_and_a_directory(short_path: Path) -> None:
    (short_path / "l").symlink_to(b"\xff\n".decode("utf-8", "surrogateescape"))
    (short_path / "d").mkdir(mode=0o700)
    link, folder = look(short_path, b"l").entry, look(short_path, b"d").entry
    assert isinstance(link, Symlink)
    assert link.target == b"\xff\n"
    assert isinstance(folder, Directory)
    assert folder.mode == 0o700


def test_special_files_have_no_entry(short_path: Path) -> None:
    os.mkfifo(short_path / "p")
    assert look(short_path, b"p").entry is None


def test_nothing_there(short_path: Path) -> None:
    (short_path / "f").touch()
    (short_path / "l").symlink_to(".")
    with View(short_path) as view:
        for path in (b"none", b"none/below", b"f/below", b"l/f"):
            assert stat_entry(view, at(path)) is None


def test_a_hardlink_differs_unless_it_is_one_of_its_leader(short_path: Path) -> None:
    for name in ("leader", "other"):
        (short_path / name).touch()
    os.link(short_path / "leader", short_path / "link")
    with View(short_path) as view:
        for path, unequal in ((at(b"link"), set()), (at(b"other"), {"link"})):
            found = stat_entry(view, path)
            assert found is not None
            assert isinstance(found.entry, File)
            wanted = found.entry._replace(link=at(b"leader"))
            assert differences_here(view, found, wanted) == unequal
            gone = found.entry._replace(link=at(b"gone"))
            assert differences_here(view, found, gone) == {"link"}


def observed(entry: Entry | None, inode: int = 2) -> LocalEntry:
    return LocalEntry(at(b"x"), entry, 1, inode, 1, 0, 0)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"size": 11}, "size"),
        ({"mtime": T0 + 1}, "mtime"),
        ({"mode": 0o600}, "mode"),
        ({"link": at(b"leader")}, "link"),
        ({"owner": b"#5"}, "owner"),
        ({"group": b"#5"}, "group"),
    ],
)
def test_each_attribute_of_a_file(change: dict[str, object], name: str) -> None:
    mine = observed(file(b"x"))
    wanted = file(b"x")
    assert differences(mine, wanted, owners=Owners()) == frozenset()
    assert differences(mine, wanted._replace(**change), owners=Owners()) == {name}  # type: ignore[arg-type]


def test_owners_count_only_where_they_can_be_set() -> None:
    wanted = file(b"x")._replace(owner=b"#5", group=b"#6")
    assert differences(observed(file(b"x")), wanted, owners=None) == frozenset()


def test_owners_are_compared_by_number() -> None:
    wanted = file(b"x")._replace(owner=b"#0", group=b"root")
    assert differences(observed(file(b"x")), wanted, owners=Owners()) == frozenset()


def test_an_unknown_owner_cannot_differ() -> None:
    wanted = file(b"x")._replace(owner=b"no-such-user", group=b"no\xffgroup")
    assert differences(observed(file(b"x")), wanted, owners=Owners()) == frozenset()


def test_symlinks_have_no_mode() -> None:
    mine = observed(symlink(b"x"))
    assert differences(mine, symlink(b"x")._replace(mode=0o700), owners=None) == frozenset()
    assert differences(mine, symlink(b"x", b"other"), owners=None) == {"target"}


def test_types() -> None:
    for mine in (file(b"x"), Directory(ROOT, 0), None):
        assert differences(observed(mine), symlink(b"x"), owners=None) == {"type"}


def test_hardlinks_are_compared_by_inode() -> None:
    wanted = file(b"x")._replace(link=at(b"leader"))
    mine = observed(file(b"x"))
    assert differences(mine, wanted, owners=None, leader=mine) == frozenset()
    other = observed(file(b"x"), inode=3)
    assert differences(mine, wanted, owners=None, leader=other) == {"link"}


def test_root_is_a_directory_of_its_own(short_path: Path) -> None:
    found = look(short_path, b"")
    assert isinstance(found.entry, Directory)
    assert found.entry.path == ROOT
    assert stat.S_IMODE(short_path.stat().st_mode) == found.entry.mode


@pytest.mark.parametrize("name", [b"#4294967295", b"#-1", b"#", b"#x", b"nul\0"])
def test_numbers_that_are_none(name: bytes) -> None:
    owners = Owners()
    assert owners.uid(name, 7) == 7
    assert owners.unknown_users == {name}
