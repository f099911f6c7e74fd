"""Groups of hardlinks are the upstream's: after moves, splits, merges, and after undo."""

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.upstream import T0, Site, Upstream

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
