"""Content that is here already is not transferred: moves, copies, twins, other modules."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.upstream import T0, Downstream, Site, Upstream, assert_equal, rsync_differences

LARGE = os.urandom(300_000)
LITTLE = 60_000
"""Bytes over the wire: more than the protocol takes, less than the content."""


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    up = place.upstream()
    up.many(b"stays", 20)
    up.put(b"a/large", LARGE)
    up.put(b"a/small", b"small content")
    return up


def count_reused(result: dict[str, Any]) -> dict[str, int]:
    """Return what was reused; where the file system makes reflinks, there are no copies."""
    counts: dict[str, int] = dict(result["reused"])
    counts["copied"] += counts.pop("cloned")
    return counts


def reused(up: Upstream, down: Downstream, *, files: int, **how: int) -> dict[str, Any]:
    """Sync again; nothing but `files` was to be brought, and all of them were here."""
    up.commit()
    result = down.synced()
    assert_equal(up, down)
    assert result["summary"]["fetches"] == 0
    assert result["summary"]["reused"] == files
    expected = {"files": files, "linked": 0, "copied": 0, "bytes": result["reused"]["bytes"], **how}
    assert count_reused(result) == expected
    assert result["reused"]["bytes"] == result["summary"]["reused_bytes"]
    assert result["received"] == 0
    return result


def inode(place: Path) -> int:
    return place.lstat().st_ino


def move(up: Upstream, old: bytes, new: bytes) -> None:
    up.at(new).parent.mkdir(parents=True, exist_ok=True)
    up.at(old).rename(up.at(new))


def test_a_moved_file_keeps_its_inode(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up)
    before = inode(down.dest / "a/large")
    move(up, b"a/large", b"b/c/renamed")
    result = reused(up, down, files=1, linked=1)
    assert result["reused"]["bytes"] == len(LARGE)
    assert inode(down.dest / "b/c/renamed") == before
    assert not (down.dest / "a/large").exists()
    # With other times or modes it is a copy: until the end the old name is public.
    move(up, b"b/c/renamed", b"b/large")
    os.utime(up.at(b"b/large"), ns=(T0 + 1, T0 + 1))
    move(up, b"a/small", b"b/small")
    up.at(b"b/small").chmod(0o600)
    reused(up, down, files=2, copied=2)


def test_a_copy_of_a_file_that_stays(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up)
    up.put(b"copy/large", LARGE)
    reused(up, down, files=1, copied=1)
    assert (down.dest / "copy/large").stat().st_nlink == 1
    for name in (b"b/1", b"b/2", b"b/3"):
        up.put(name, LARGE)
    up.at(b"a/large").unlink()
    reused(up, down, files=3, linked=1, copied=2)
    assert len({inode(down.dest / "b" / name) for name in "123"}) == 3


def test_duplicates_as_hardlinks(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up, duplicates="hardlink")
    up.put(b"copy/large", LARGE)
    up.put(b"copy/other-time", LARGE, mtime=T0 + 1)
    reused(up, down, files=2, linked=1, copied=1)
    assert inode(down.dest / "copy/large") == inode(down.dest / "a/large")
    # What changes one of them must not change the other.
    up.at(b"copy/large").chmod(0o600)
    up.commit()
    down.synced()
    assert_equal(up, down)
    assert inode(down.dest / "copy/large") != inode(down.dest / "a/large")


def test_twins_come_once(up: Upstream, place: Site) -> None:
    up.put(b"b/large", LARGE)
    up.commit()
    down = place.downstream(up)
    result = down.synced()
    assert_equal(up, down)
    assert count_reused(result)["copied"] == 1
    assert result["received"] < len(LARGE) + LITTLE
    new = os.urandom(300_000)
    for name in (b"t/1", b"t/2", b"t/3"):
        up.put(name, new)
    up.commit()
    result = down.synced()
    assert_equal(up, down)
    assert result["summary"]["fetches"] == 1
    assert count_reused(result)["copied"] == 2
    assert result["received"] < len(new) + LITTLE


def spoil(place: Path) -> None:
    """Give a file other content of the same size and time."""
    place.write_bytes(LARGE[::-1])
    os.utime(place, ns=(T0, T0))


def test_what_was_changed_here_is_not_believed(up: Upstream, place: Site) -> None:
    """Size and time as before, content not: the time of the last change gives it away."""
    down = place.synced_downstream(up)
    spoil(down.dest / "a/large")
    # As if the last sync were long ago.
    state = down.state_file.read_text().replace(f'"time": {down.state.time}', '"time": 1')
    down.state_file.write_text(state)
    move(up, b"a/large", b"b/large")
    up.commit()
    result = down.synced()
    assert_equal(up, down)
    assert result["summary"]["reused"] == 1
    assert result["reused"]["files"] == 0
    assert result["received"] > len(LARGE)


def test_always_by_digest(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up, reuse_check="digest")
    spoil(down.dest / "a/large")
    move(up, b"a/large", b"b/large")
    move(up, b"a/small", b"b/small")
    up.commit()
    result = down.synced()
    assert_equal(up, down)
    assert result["reused"]["linked"] == result["reused"]["files"] == 1


def test_from_another_module(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up)
    sibling = place.upstream()
    sibling.put(b"mine/large", LARGE, mtime=T0 + 9)
    sibling.commit()
    dest = place.folder / f"{sibling.name}-copy"
    dest.mkdir()
    other = place.downstream(sibling, dest)
    down_config = (down.root / "client.toml").read_text()
    own_config = (other.root / "client.toml").read_text()
    (down.root / "client.toml").write_text(
        f'{down_config}\n{own_config}\nreuse_from = ["{up.name}"]\n'
    )
    second = Downstream(sibling.name, dest, down.root)
    result = second.synced()
    assert_equal(sibling, second)
    assert count_reused(result)["copied"] == 1
    assert result["received"] == 0
    assert (dest / "mine/large").stat().st_nlink == 1
    down.configure(reuse_from=("nonesuch",))
    done = down.sync()
    assert done.code == 40
    assert "reuse_from: 'nonesuch' is not another module" in done.err


def test_files_of_a_hardlink_group_move(up: Upstream, place: Site) -> None:
    up.at(b"a/second").hardlink_to(up.at(b"a/large"))
    down = place.synced_downstream(up)
    before = inode(down.dest / "a/large")
    move(up, b"a/large", b"b/large")
    move(up, b"a/second", b"b/second")
    reused(up, down, files=1, linked=1)
    assert inode(down.dest / "b/large") == inode(down.dest / "b/second") == before
    # One that leaves the group may not take the inode that the others still have.
    up.at(b"b/second").unlink()
    up.put(b"c/second", LARGE)
    reused(up, down, files=1, copied=1)
    assert (down.dest / "c/second").stat().st_nlink == 1


def test_the_plan_says_from_where(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up)
    move(up, b"a/large", b"b/large")
    up.commit()
    done = down.run("plan", down.name)
    assert "reuse      b/large  (from a/large, 300,000 bytes, payload)" in done.out
    assert "1 file that is here already (293.0 KiB)" in done.out
    done = down.sync()
    assert "reused 1 file (293.0 KiB): 1 linked" in done.err
    assert "Total bytes received: 0\n" in done.out


def test_old_names_that_wait_do_not_get_the_attributes_of_new_ones(
    up: Upstream, place: Site
) -> None:
    down = place.synced_downstream(up, delete_after="1h")
    move(up, b"a/large", b"b/large")
    up.commit()
    down.synced()
    assert inode(down.dest / "a/large") == inode(down.dest / "b/large")
    up.put(b"a/large", LARGE, mode=0o600)
    up.commit()
    down.synced()
    assert inode(down.dest / "a/large") != inode(down.dest / "b/large")
    assert_equal(up, down)


def test_back_from_hardlinks_to_copies(up: Upstream, place: Site) -> None:
    up.put(b"b/large", LARGE)
    down = place.synced_downstream(up, duplicates="hardlink")
    assert inode(down.dest / "a/large") == inode(down.dest / "b/large")
    down.configure(duplicates="copy")
    assert down.verify().code == 47
    result = down.synced("--adopt")
    assert_equal(up, down)
    assert result["received"] == 0
    assert inode(down.dest / "a/large") != inode(down.dest / "b/large")


def test_repair_reads_what_it_mends_with(up: Upstream, place: Site) -> None:
    up.put(b"b/large", LARGE)
    up.put(b"c/large", LARGE)
    down = place.synced_downstream(up)
    for name in ("a/large", "b/large"):
        spoil(down.dest / name)
    done = down.verify("--content", "--repair")
    assert done.code == 0, done
    assert_equal(up, down)


FOLDERS = (b"a", b"b", b"c/d")
CONTENTS = [bytes([65 + number]) * (3000 + 100 * number) for number in range(6)]
STEPS = 5
SEEDS = int(os.environ.get("HUAI_TEST_SEEDS", "2"))
"""Histories of each kind."""


class History:
    """An upstream on which things happen, the same for each seed."""

    def __init__(self, up: Upstream, seed: int) -> None:
        self.up = up
        self._random = random.Random(seed)
        self._names = (b"%d" % number for number in range(100_000))
        up.many(b"stays", 5)
        for _ in range(12):
            self._add()

    def _files(self) -> list[Path]:
        return sorted(
            path
            for folder in FOLDERS
            for path in self.up.at(folder).rglob("*")
            if path.is_file() and not path.is_symlink()
        )

    def _new(self) -> bytes:
        return self._random.choice(FOLDERS) + b"/" + next(self._names)

    def _add(self) -> None:
        when = T0 + self._random.randrange(2)
        self.up.put(self._new(), self._random.choice(CONTENTS), mtime=when)

    def _target(self) -> Path:
        target = self.up.at(self._new())
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _move(self, path: Path) -> None:
        path.rename(self._target())

    def _copy(self, path: Path) -> None:
        shutil.copy2(path, self._target())

    def _link(self, path: Path) -> None:
        self._target().hardlink_to(path)

    def _swap(self, path: Path) -> None:
        other = self._random.choice(self._files())
        if other != path:
            spare = path.with_name("spare")
            path.rename(spare)
            other.rename(path)
            spare.rename(other)

    def _chmod(self, path: Path) -> None:
        path.chmod(self._random.choice((0o600, 0o644, 0o640)))

    def _touch(self, path: Path) -> None:
        when = T0 + self._random.randrange(100)
        os.utime(path, ns=(when, when))

    def _rewrite(self, path: Path) -> None:
        path.unlink()
        path.write_bytes(self._random.choice(CONTENTS))
        self._touch(path)

    def _remove(self, path: Path) -> None:
        path.unlink()

    def step(self) -> None:
        """Some changes, and a commit."""
        ways = [self._move] * 5 + [self._copy] * 3
        ways += [self._link, self._swap, self._chmod, self._touch, self._rewrite, self._remove]
        for _ in range(self._random.randint(1, 8)):
            self._random.choice(ways)(self._random.choice(self._files()))
            if len(self._files()) < 8:
                self._add()
        self.up.commit()


def inodes(top: Path) -> set[frozenset[str]]:
    """Which names share an inode."""
    groups: dict[int, set[str]] = {}
    for path in top.rglob("*"):
        if path.is_file():
            groups.setdefault(path.stat().st_ino, set()).add(str(path.relative_to(top)))
    return {frozenset(names) for names in groups.values()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("settings", [{}, {"duplicates": "hardlink"}, {"delete_after": "1h"}])
def test_any_history(place: Site, seed: int, settings: dict[str, Any]) -> None:
    up = place.upstream()
    history = History(up, seed)
    down = place.synced_downstream(up, **settings)
    for number in range(STEPS):
        history.step()
        down.synced()
        if "delete_after" not in settings:
            assert rsync_differences(up, down) == "", number
        if not settings:
            assert inodes(down.dest) == inodes(up.tree), number
    if "delete_after" in settings:
        assert down.verify("--content").code == 0
        down.configure(delete_after="0")
        down.synced("--adopt")
    assert_equal(up, down)
