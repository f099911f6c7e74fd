"""Old commits went while downstreams slept: each goes on from where it is."""

import shutil
from pathlib import Path

import pytest

from huai_server.config.load import load
from huai_server.store.maintain import maintain
from huai_server.store.replaced import KEPT
from huai_server.store.repository import Repository
from tests.support.committing import ENVIRONMENT, fsck, git
from tests.support.processes import run_program
from tests.support.upstream import Downstream, Site, Upstream, assert_equal

LATER = 1_900_000_000
KEEP = 3


@pytest.fixture
def up(place: Site) -> Upstream:
    up = place.upstream(keep="1d", keep_commits=KEEP)
    up.many(b"d", 400)
    return up


def go_on(up: Upstream, commits: int) -> None:
    """Make so many more commits."""
    head = Repository(up.places.repository).head()
    assert head
    for number in range(head.info.serial, head.info.serial + commits):
        up.put(b"d/%d" % (number % 400), b"new %d" % number, mtime=None)
        up.at(b"d/%d" % (399 - number % 100)).unlink()
        assert up.commit().changed


def drop(up: Upstream) -> int:
    """Drop all that may go, from the disk as well; return the number of commits."""
    retention = load(up.root).module(up.name).retention
    dropped = maintain(up.places, lambda: retention, now=LATER).plan.dropped
    done = maintain(up.places, lambda: retention, now=LATER + KEPT)
    assert done.after.replaced.files == 0
    assert done.after.packs.files == 1
    return dropped


def knows(up: Upstream, down: Downstream) -> bool:
    """Return True if the upstream still has the commit that a downstream applied."""
    command = ["git", "-C", str(up.places.repository), "cat-file", "-e", down.state.applied or ""]
    return run_program(*command, env=ENVIRONMENT).returncode == 0


def test_a_downstream_that_slept(place: Site, up: Upstream) -> None:
    """It gets all metadata again, and only what changed of the files."""
    down = place.synced_downstream(up)
    go_on(up, 10)
    assert drop(up) > 0
    assert not knows(up, down)
    summary = down.synced()
    assert 0 < summary["done"]["published"] <= 20
    assert_equal(up, down)
    go_on(up, 2)
    down.synced()
    assert_equal(up, down)


def test_downstreams_that_are_some_commits_behind(place: Site, up: Upstream) -> None:
    """One for each commit, so some where one history ends and the next begins."""
    sleepers = [place.synced_downstream(up)]
    for _ in range(2 * KEEP + 1):
        go_on(up, 1)
        sleepers.append(place.synced_downstream(up))
    drop(up)
    in_history = [knows(up, down) for down in sleepers]
    assert in_history == sorted(in_history)
    assert 0 < sum(in_history) < len(in_history)
    for down in sleepers:
        down.synced()
        assert_equal(up, down)
    go_on(up, 1)
    for down in sleepers:
        down.synced()
        assert_equal(up, down)


def test_one_that_was_interrupted_before_it_slept(place: Site, up: Upstream) -> None:
    """The commit that it was being brought to is gone, too."""
    down = place.synced_downstream(up)
    go_on(up, 1)
    assert down.run("plan", down.name).code == 0  # fetches the commit
    shutil.rmtree(down.dest / "d")
    go_on(up, 10)
    assert drop(up) > 0
    down.sync("--adopt")
    assert_equal(up, down)


def test_a_clone_by_git_that_slept(place: Site, up: Upstream, tmp_path: Path) -> None:
    """Git follows as well, with all that is still there."""
    up.commit()
    copy = tmp_path / "copy.git"
    url = f"{place.url}/git/{up.name}.git"
    git(tmp_path, "clone", "--quiet", "--mirror", url, str(copy))
    go_on(up, 10)
    refs = git(tmp_path, "ls-remote", url).splitlines()
    assert [line.split("\t")[1] for line in refs] == ["HEAD", "refs/heads/main"]
    mirror = tmp_path / "mirror.git"
    git(tmp_path, "clone", "--quiet", "--mirror", str(up.places.repository), str(mirror))
    assert "past" not in git(mirror, "for-each-ref"), "the refs of old commits are hidden"
    drop(up)
    git(copy, "fetch", "--quiet", "--prune")
    fsck(copy)
    assert git(copy, "rev-parse", "main") == git(up.places.repository, "rev-parse", "main")
