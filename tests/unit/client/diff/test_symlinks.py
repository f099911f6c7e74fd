"""Symlinks that lead out of the tree."""

import subprocess
from pathlib import Path

import pytest

from huai_client.diff.symlinks import is_unsafe, points_outside
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath
from tests.support.local_trees import at


def test_out(subtests: pytest.Subtests) -> None:
    for path, target in [
        (b"l", b"/etc"),
        (b"l", b".."),
        (b"l", b"a/../.."),
        (b"d/l", b"../../x"),
        (b"d/l", b"../..//d"),
        (b"d/l", b"./../../d"),
    ]:
        with subtests.test(path=path, target=target):
            assert points_outside(at(path), target)


def test_in(subtests: pytest.Subtests) -> None:
    for path, target in [
        (b"l", b"a"),
        (b"l", b"..."),
        (b"l", b"a/../b"),
        (b"d/l", b".."),
        (b"d/l", b"../x"),
        (b"d/e/l", b"../../x"),
        (b"l", b""),
    ]:
        with subtests.test(path=path, target=target):
            assert not points_outside(at(path), target)


TARGETS = ("a", "a/b", "/a", "..", "../x", "../../x", "a/..", "a/../b", "d/../../x", "./a", "a//b")
DEEP = ("../../y", "../..", "./..", "../../../y", ".././y", "..//y")


def test_what_is_left_out_is_what_rsync_leaves_out(tmp_path: Path) -> None:
    """Compare with rsync's `--safe-links`, in targets without `x/..`."""
    source, dest = tmp_path / "source", tmp_path / "dest"
    (source / "d/e").mkdir(parents=True)
    unsafe: dict[RelPath, bool] = {}
    for folder in ("", "d/", "d/e/"):
        for number, target in enumerate((*TARGETS, *DEEP)):
            path = RelPath(f"{folder}{number}".encode())
            (source / path.decode()).symlink_to(target)
            unsafe[path] = is_unsafe(Symlink(path, target.encode(), 0))
    subprocess.run(["rsync", "-a", "--safe-links", f"{source}/", str(dest)], check=True, timeout=30)
    missing = {path: not (dest / path.decode()).is_symlink() for path in unsafe}
    assert unsafe == missing
    assert len(set(unsafe.values())) == 2


def test_only_symlinks_are_left_out() -> None:
    path = RelPath(b"a")
    assert not any(map(is_unsafe, (None, File(path, 1, 0), Directory(path, 0))))
