"""A hardlink is made of what the metadata state, and groups are those of the upstream."""

import os
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.upstream import T0, Pair, Site, Upstream, assert_equal

CONTENT = b"the same under each name " * 40


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


def test_a_leader_that_was_damaged_here_is_mended_with_its_group(place: Site) -> None:
    """Each group is in a folder of its own."""
    up = place.upstream()
    folders = [b"%d" % number for number in range(len(DAMAGE))]
    for folder in folders:
        up.put(folder + b"/d/a", CONTENT)
        up.at(folder + b"/d/b").hardlink_to(up.at(folder + b"/d/a"))
        up.put(folder + b"/other", b"other")
    down = place.synced_downstream(up)
    for folder, damage in zip(folders, DAMAGE, strict=True):
        up.at(folder + b"/z").hardlink_to(up.at(folder + b"/d/a"))
        up.put(folder + b"/other", b"changed", mtime=T0 + 1)
        damage(down.dest / folder.decode() / "d/a")
    up.commit()
    down.synced()
    assert_equal(up, down)
    for folder in folders:
        third = down.dest / folder.decode() / "z"
        assert (third.read_bytes(), third.stat().st_nlink) == (CONTENT, 3), folder
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


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("now", {}),
    ("now", {"trash": "7d"}),
    ("now", {"delete_after": "1h"}),
    ("now", {"trash": "7d", "delete_after": "1h"}),
    ("off", {"trash": "7d"}),
]


def groups(tree: Path) -> set[frozenset[str]]:
    """Return the names of each file with several of them in the tree."""
    names_of: dict[int, set[str]] = defaultdict(set)
    for folder, below, files in os.walk(tree):
        below[:] = [name for name in below if name != ".~tmp~"]
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                names_of[path.stat().st_ino].add(str(path.relative_to(tree)))
    return {frozenset(names) for names in names_of.values() if len(names) > 1}


def waiting(tree: Path, up: Upstream) -> set[str]:
    """Return the paths that stay for a while though the upstream removed them."""
    return {
        str(path.relative_to(tree))
        for path in tree.rglob("*")
        if ".~tmp~" not in path.parts and not (up.tree / path.relative_to(tree)).exists()
    }


def without(groups: set[frozenset[str]], names: set[str]) -> set[frozenset[str]]:
    return {rest for group in groups if len(rest := group - names) > 1}


def first(up: Upstream) -> None:
    for name in (b"moves/a", b"splits/a", b"merges/a", b"merges/b", b"leads/a", b"alone/a"):
        up.put(name, b"content of " + name[:5] * 1000)
    for leader, name in (
        (b"moves/a", b"moves/b"),
        (b"splits/a", b"splits/b"),
        (b"splits/a", b"splits/c"),
        (b"splits/a", b"splits/d"),
        (b"leads/a", b"leads/b"),
        (b"leads/a", b"leads/c"),
    ):
        link(up, leader, name)


def second(up: Upstream) -> None:
    up.at(b"moves/a").rename(up.at(b"moves/z"))
    up.at(b"moves/b").rename(up.at(b"elsewhere"))
    split(up, b"splits/c")
    up.at(b"splits/d").unlink()
    link(up, b"splits/c", b"splits/d")
    up.at(b"merges/b").unlink()
    link(up, b"merges/a", b"merges/b")
    up.at(b"leads/a").unlink()
    link(up, b"alone/a", b"alone/b")
    up.put(b"copy", up.at(b"alone/a").read_bytes(), mtime=T0)


def third(up: Upstream) -> None:
    split(up, b"merges/a")
    split(up, b"alone/b")
    up.at(b"moves/z").rename(up.at(b"moves/a"))
    link(up, b"leads/b", b"leads/a")


def link(up: Upstream, leader: bytes, name: bytes) -> None:
    up.at(name).hardlink_to(up.at(leader))


def split(up: Upstream, name: bytes) -> None:
    content = up.at(name).read_bytes()
    up.at(name).unlink()
    up.put(name, content)


@pytest.mark.parametrize(("digest", "settings"), SETTINGS)
def test_groups_are_the_upstreams(place: Site, settings: dict[str, Any], digest: str) -> None:
    up = place.upstream(digest=digest)
    first(up)
    down = place.synced_downstream(up, **settings)
    assert groups(down.dest) == groups(up.tree)
    for change in (second, third):
        before = groups(down.dest)
        change(up)
        up.commit()
        down.synced()
        late = waiting(down.dest, up)
        assert without(groups(down.dest), late) == groups(up.tree), change
        if "trash" in settings and "delete_after" not in settings:
            assert down.run("undo", down.name).code == 0
            assert groups(down.dest) == before, change
            assert down.verify("--content").code == 0
            down.synced("--unhold")
            assert groups(down.dest) == groups(up.tree), change
        assert down.verify().code == 0


def test_duplicates_merge_aloud_and_part_again(place: Site) -> None:
    """`duplicates = "hardlink"` shares inodes; without it the groups are the upstream's."""
    up = place.upstream()
    first(up)
    down = place.synced_downstream(up, trash="7d", duplicates="hardlink")
    for change in (second, third):
        change(up)
        up.commit()
        down.synced()
        assert down.run("undo", down.name).code == 0
        assert down.verify("--content").code == 0
        down.synced("--unhold")
        together = groups(down.dest)
        assert all(any(group <= more for more in together) for group in groups(up.tree)), change
    down.configure(duplicates="copy")
    down.synced("--adopt")
    assert groups(down.dest) == groups(up.tree)
