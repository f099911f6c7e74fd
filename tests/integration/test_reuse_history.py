"""Any history of moves, copies and changed attributes: every sync ends at what the upstream has."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.upstream import T0, Site, Upstream, assert_equal, rsync_differences

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
