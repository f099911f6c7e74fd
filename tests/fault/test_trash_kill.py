"""A sync with a trash, and an undo, killed before any change: the next run ends it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from huai_client.tree import STAGING
from tests.fault.sampling import CUTS, LONG
from tests.support.system_calls import CHANGING, Cut, supervise
from tests.support.upstream import SECONDS, T0, Downstream, Ended, Site, Upstream, rsync_differences

SPARE = 4
"""By so many calls two equal runs may differ: threads that need one directory may both make it."""


def first(up: Upstream) -> None:
    up.many(b"moves", 130)
    up.put(b"dists/InRelease", b"pointer 1")
    up.put(b"becomes-folder", b"1")
    up.put(b"becomes-file/a", b"1")
    up.put(b"goes/deep/er", b"1")
    up.put(b"stays/1", b"1")
    up.put(b"stays/2", b"the same")
    up.put(b"h/one", b"linked")
    up.at(b"h/two").hardlink_to(up.at(b"h/one"))
    os.symlink("stays", up.at(b"link"))


def second(up: Upstream) -> None:
    up.at(b"moves").rename(up.at(b"moved"))
    up.at(b"becomes-folder").unlink()
    up.put(b"becomes-folder/x", b"2")
    shutil.rmtree(up.at(b"becomes-file"))
    up.put(b"becomes-file", b"2")
    shutil.rmtree(up.at(b"goes"))
    up.put(b"stays/1", b"22", mtime=T0 + 5)
    up.at(b"stays/2").chmod(0o600)
    up.at(b"h/one").unlink()
    up.put(b"h/one", b"alone", mtime=T0 + 5)
    up.put(b"new", b"2")
    up.put(b"dists/InRelease", b"pointer 2", mtime=T0 + 5)
    up.at(b"link").unlink()
    os.symlink("h", up.at(b"link"))


@dataclass
class Ground:
    """An upstream at its second commit, as it was at its first, and downstreams to cut."""

    up: Upstream
    before: Upstream
    saved: Path
    folder: Path

    def downstream(self) -> Downstream:
        """As it was saved: no trace of the last cut is left."""
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run(["cp", "-a", self.saved, self.folder], check=True, timeout=SECONDS)
        down = Downstream(self.up.name, self.folder / "dest", self.folder / "root")
        down.configure(dest=str(down.dest), content_urls=(str(self.up.tree),))
        return down


@pytest.fixture(name="pair", scope="module")
def two_commits(place: Site) -> tuple[Upstream, Upstream, Downstream]:
    up = place.upstream()
    first(up)
    down = place.synced_downstream(up, trash="7d")
    before = Upstream(up.name, up.tree.with_name(f"{up.name}-before"), up.root)
    subprocess.run(["cp", "-a", up.tree, before.tree], check=True, timeout=SECONDS)
    second(up)
    up.commit()
    return up, before, down


def saved(pair: tuple[Upstream, Upstream, Downstream], folder: Path, *, synced: bool) -> Ground:
    up, before, down = pair
    place = folder / "saved"
    place.mkdir()
    for source, name in ((down.dest, "dest"), (down.root, "root")):
        subprocess.run(["cp", "-a", source, place / name], check=True, timeout=SECONDS)
    ground = Ground(up, before, place, folder / "now")
    if synced:
        ground.downstream().synced()
        shutil.rmtree(place)
        ground.folder.rename(place)
    return ground


@pytest.fixture(name="unsynced")
def before_the_sync(pair: tuple[Upstream, Upstream, Downstream], tmp_path: Path) -> Ground:
    return saved(pair, tmp_path, synced=False)


@pytest.fixture(name="synced")
def after_the_sync(pair: tuple[Upstream, Upstream, Downstream], tmp_path: Path) -> Ground:
    return saved(pair, tmp_path, synced=True)


def cut(down: Downstream, point: int, *command: str) -> Cut:
    """Run a command that is killed at `point`; 0: it is not."""
    deciding = Cut(point)
    outcome = supervise(CHANGING, lambda: down.run(*command).code, deciding)
    if not outcome.killed:
        assert point - deciding.passed <= SPARE, outcome
        assert outcome.result == 0, outcome
    return deciding


def points(ground: Ground, command: str) -> range:
    """Where to cut."""
    down = ground.downstream()
    total = cut(down, 0, command, down.name).passed
    assert total > 50, "the cuts miss the run"
    return range(1, total + 1, max(1, total // CUTS))


def assert_is(down: Downstream, up: Upstream, context: object) -> None:
    assert rsync_differences(up, down) == "", context
    verified = down.verify("--content")
    assert verified.code == 0, (context, verified)
    assert down.state.attempted == (), context


def good(ended: Ended) -> None:
    assert ended.code == 0, ended


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_a_sync_is_cut_then_finished_then_undone(unsynced: Ground) -> None:
    for point in points(unsynced, "sync"):
        down = unsynced.downstream()
        cut(down, point, "sync", down.name)
        good(down.sync())
        assert_is(down, unsynced.up, point)
        assert not (down.dest / os.fsdecode(STAGING)).exists(), point
        good(down.run("undo", down.name))
        assert_is(down, unsynced.before, point)


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_a_sync_is_cut_then_undone(unsynced: Ground) -> None:
    begun = set[bool]()
    for point in points(unsynced, "sync"):
        down = unsynced.downstream()
        cut(down, point, "sync", down.name)
        was_begun = bool(down.state.attempted or down.state.before)
        begun.add(was_begun)
        ended = down.run("undo", down.name)
        assert (ended.code == 0) is was_begun, (point, ended)
        if was_begun:
            assert_is(down, unsynced.before, point)
            good(down.sync("--unhold"))
            assert_is(down, unsynced.up, point)
    assert begun == {False, True}, "the cuts miss a part of the run"


def again(down: Downstream) -> Ended:
    return down.run("undo", down.name)


@pytest.mark.slow
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("end", [Downstream.sync, again])
def test_an_undo_is_cut_then_finished(synced: Ground, end: Callable[[Downstream], Ended]) -> None:
    undone = synced.downstream().state.applied
    for point in points(synced, "undo"):
        down = synced.downstream()
        cut(down, point, "undo", down.name)
        begun = down.state.held == undone
        ended = end(down)
        if begun or end is again:
            # Cut at its very end, it needs no second one.
            assert ended.code == 0 or down.state.before == "", (point, ended)
            assert down.state.held == undone, point
            assert_is(down, synced.before, point)
        else:
            good(ended)
            assert_is(down, synced.up, point)


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_an_undo_is_cut_then_given_up(synced: Ground) -> None:
    for point in points(synced, "undo"):
        down = synced.downstream()
        cut(down, point, "undo", down.name)
        good(down.sync("--unhold"))
        assert_is(down, synced.up, point)
        assert down.state.held == ""


def test_cut_twice(synced: Ground) -> None:
    """The undo is interrupted, and so is the sync that would finish it."""
    for point in points(synced, "undo"):
        down = synced.downstream()
        cut(down, point, "undo", down.name)
        if not down.state.attempted:
            continue
        cut(down, 5, "sync", down.name)
        good(down.sync())
        assert_is(down, synced.before, point)


def test_deletions_that_are_due_are_cut(place: Site, tmp_path: Path) -> None:
    up = place.upstream()
    up.many(b"pool", 6)
    up.put(b"stays", b"1")
    down = place.synced_downstream(up, trash="7d", delete_after="1h")
    shutil.rmtree(up.at(b"pool"))
    up.commit()
    down.synced()
    down.configure(delete_after="0")
    ground = saved((up, up, down), tmp_path, synced=False)
    total = cut(ground.downstream(), 0, "sync", up.name).passed
    assert total > 10, "the cuts miss the run"
    for point in range(1, total + 1, max(1, total // CUTS)):
        due = ground.downstream()
        cut(due, point, "sync", up.name)
        good(due.sync())
        assert_is(due, up, point)
        kept = {path.name for path in due.dest.glob(".~tmp~/huai-trash/*/pool/*")}
        assert kept == {*"012345"}, point
