"""The attributes in which a path of a real tree differs from the expected entry."""

import os
from pathlib import Path

import pytest

from huai_client.diff.candidate import Candidate
from huai_client.diff.table import compare_path
from huai_client.tree import PathError, View
from huai_schema.entries import Directory, Entry, File, Symlink
from tests.support.local_trees import T0, at

NAME = at(b"x")


def compared(folder: Path, expected: Entry | None, *, owners: bool = True) -> Candidate:
    with View(folder, owners=owners) as view:
        return compare_path(view, NAME, expected)


def make_file(folder: Path) -> File:
    """Make a file, and return its entry."""
    (folder / "x").write_bytes(b"0123456789")
    (folder / "x").chmod(0o644)
    os.utime(folder / "x", ns=(1, T0))
    entry = compared(folder, None).have
    assert isinstance(entry, File)
    return entry


@pytest.mark.parametrize("name", ["owner", "group"])
def test_owners_count_only_where_they_can_be_set(short_path: Path, name: str) -> None:
    expected = make_file(short_path)._replace(**{name: b"#54321"})  # type: ignore[arg-type]
    unequal = {name} if os.geteuid() == 0 else set()
    assert compared(short_path, expected).differing == unequal
    assert compared(short_path, expected, owners=False).differing == set()


def test_owners_are_compared_by_number(short_path: Path) -> None:
    expected = make_file(short_path)
    status = (short_path / "x").stat()
    user, group = b"#%d" % status.st_uid, b"#%d" % status.st_gid
    assert compared(short_path, expected._replace(owner=user, group=group)).differing == set()


def test_an_unknown_owner_cannot_differ(short_path: Path) -> None:
    expected = make_file(short_path)._replace(owner=b"no-such-user", group=b"no\xffgroup")
    assert compared(short_path, expected).differing == set()


def test_symlinks_have_no_mode(short_path: Path) -> None:
    (short_path / "x").symlink_to("there")
    expected = compared(short_path, None).have
    assert isinstance(expected, Symlink)
    assert compared(short_path, expected._replace(mode=0o700)).differing == set()
    assert compared(short_path, expected._replace(target=b"other")).differing == {"target"}


def test_types(short_path: Path) -> None:
    expected = make_file(short_path)
    assert compared(short_path, Directory(NAME, 0)).differing == {"type"}
    (short_path / "x").unlink()
    nothing = compared(short_path, expected)
    assert (nothing.present, nothing.have) == (False, None)
    os.mkfifo(short_path / "x")
    special = compared(short_path, expected)
    assert (special.present, special.have, special.special) == (True, None, True)


def test_what_cannot_be_looked_at(short_path: Path) -> None:
    expected = make_file(short_path)._replace(link=at(b"a" * 256))
    with pytest.raises(PathError, match="a" * 256):
        compared(short_path, expected)
