"""A hardlink is made of what the metadata state, whatever was done to the group here."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.upstream import T0, Pair, Site, assert_equal, site

CONTENT = b"the same under each name " * 40


@pytest.fixture
def place(short_path: Path) -> Iterator[Site]:
    with site(short_path) as place:
        yield place


def group(place: Site) -> Pair:
    """A group of two that is in step; upstream a third name and another file come."""
    up = place.upstream()
    up.put(b"d/a", CONTENT)
    up.at(b"d/b").hardlink_to(up.at(b"d/a"))
    up.put(b"other", b"other")
    down = place.synced_downstream(up)
    up.at(b"z").hardlink_to(up.at(b"d/a"))
    up.put(b"other", b"changed", mtime=T0 + 1)
    up.commit()
    return up, down


def edited(leader: Path) -> None:
    leader.write_bytes(b"not verified")


def replaced(leader: Path) -> None:
    leader.unlink()
    leader.write_bytes(b"another inode")


def a_symlink(leader: Path) -> None:
    leader.unlink()
    leader.symlink_to("/etc/passwd")


def a_directory(leader: Path) -> None:
    leader.unlink()
    leader.mkdir()


def another_mode(leader: Path) -> None:
    leader.chmod(0o666)


def without_its_directory(leader: Path) -> None:
    shutil.rmtree(leader.parent)


DAMAGE: list[Callable[[Path], None]] = [
    edited,
    replaced,
    a_symlink,
    a_directory,
    another_mode,
    Path.unlink,
    without_its_directory,
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_leader_that_was_damaged_here_is_mended_with_its_group(
    place: Site, damage: Callable[[Path], None]
) -> None:
    up, down = group(place)
    damage(down.dest / "d/a")
    down.synced()
    assert_equal(up, down)
    assert (down.dest / "z").read_bytes() == CONTENT
    assert os.stat(down.dest / "z").st_nlink == 3
    assert down.verify("--content").code == 0


def test_a_file_of_the_administrator_gets_no_second_name(place: Site) -> None:
    """It is protected, so it is not repaired; it is not served under another name either."""
    up = place.upstream()
    up.put(b"public", b"x" * 30)
    down = place.synced_downstream(up, protect=("/.htpasswd",))
    own = down.dest / ".htpasswd"
    own.write_bytes(b"admin:secret")
    own.chmod(0o600)
    up.at(b".htpasswd").hardlink_to(up.at(b"public"))
    up.commit()
    down.synced()
    assert own.stat().st_nlink == 1
    assert (down.dest / "public").read_bytes() == b"x" * 30
    assert b"secret" not in (down.dest / "public").read_bytes()


def test_a_leader_that_is_touched_or_moved_in_the_same_commit_is_linked(place: Site) -> None:
    up, down = group(place)
    os.utime(up.at(b"d/a"), ns=(T0 + 9, T0 + 9))
    up.at(b"d/a").chmod(0o600)
    up.commit()
    result = down.synced()
    assert result["summary"]["fetches"] == 1  # "other"
    assert_equal(up, down)
    up, down = group(place)
    up.at(b"d").rename(up.at(b"e"))
    up.commit()
    down.synced()
    assert_equal(up, down)


def test_a_hardlink_whose_name_sorts_first_needs_no_copy(place: Site) -> None:
    up = place.upstream()
    up.put(b"large", b"1" * 100_000)
    down = place.synced_downstream(up)
    before = (down.dest / "large").stat().st_ino
    up.at(b"first").hardlink_to(up.at(b"large"))
    up.commit()
    reused = down.synced()["reused"]
    assert (reused["linked"], reused["copied"], reused["cloned"]) == (1, 0, 0)
    assert (down.dest / "first").stat().st_ino == before
    assert (down.dest / "large").stat().st_nlink == 2
    assert_equal(up, down)
