"""A sync that reuses what is here, killed anywhere: the next one finishes, and shares no inode."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from huai_client.modes import Modes
from tests.fault.cut_sync import cut, cut_at
from tests.fault.sampling import CUTS, LONG
from tests.fault.story import Story, commit_and_keep, finish
from tests.support.upstream import SECONDS, T0, Downstream, Site, Upstream, rsync_differences

FILES = 12
LARGE = os.urandom(200_000)


@pytest.fixture(name="story", scope="module", params=["copy", "hardlink"])
def three_commits(request: pytest.FixtureRequest, place: Site) -> Story:
    """Files are moved and copied; then the old names come back, and all get other modes."""
    up = place.upstream()
    commits = {}

    def commit(which: str) -> None:
        commits[which] = commit_and_keep(up, which)

    up.many(b"old", FILES, 1000)
    up.many(b"stays", FILES, 1000)
    up.put(b"large", LARGE)
    commit("a")
    # The modes tell the files apart, those too that everybody may write to.
    down = place.downstream(up, duplicates=request.param, modes=Modes.EXACT)
    down.synced()
    up.at(b"new").mkdir()
    for number in range(FILES):
        name = b"%d" % number
        # One stays, or they would be a directory that moves whole.
        if number:
            up.at(b"old/" + name).rename(up.at(b"new/" + name))
        up.put(b"copies/" + name, up.at(b"stays/" + name).read_bytes())
        up.put(b"twins/" + name, b"the same %d " % (number // 2) * 100)
    up.put(b"new/large", LARGE, mtime=T0 + 1)
    commit("b")
    for number in range(1, FILES):
        name = b"%d" % number
        up.put(b"old/" + name, up.at(b"new/" + name).read_bytes(), mode=0o600)
        up.at(b"new/" + name).chmod(0o640)
        up.at(b"twins/" + name).chmod(0o600 + number)
        up.at(b"copies/" + name).chmod(0o600)
    commit("c")
    shutil.rmtree(up.tree)
    subprocess.run(["cp", "-a", f"{up.tree}-a", up.tree], check=True, timeout=SECONDS)
    commit("back")
    return Story(up, down, commits)


def assert_parted(up: Upstream, down: Downstream) -> None:
    """Nothing shares an inode that does not upstream, and one in transit least of all."""
    names = [path for path in up.tree.rglob("*") if path.is_file()]
    inodes = {(down.dest / path.relative_to(up.tree)).stat().st_ino for path in names}
    assert len(inodes) == len(names)


@pytest.mark.slow
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("newest", ["b", "c", "back"])
def test_a_kill_at_many_points(story: Story, tmp_path: Path, newest: str) -> None:
    hardlinks = "hardlink" in (story.down.root / "client.toml").read_text()
    whole = cut(story.downstream(tmp_path / "whole", story.publish("b")), 0)
    assert not whole.killed
    total = whole.passed
    assert total > 150, "the cuts miss the run"
    offset = ["b", "c", "back"].index(newest)
    for point in range(1 + offset, total + 1, max(1, total // CUTS)):
        up = story.publish("b")
        down = story.downstream(tmp_path / str(point), up)
        cut_at(down, point, total)
        up = story.publish(newest)
        down.configure(content_urls=(str(up.tree),))
        finish(down, up)
        if not hardlinks:
            assert_parted(up, down)
        shutil.rmtree(tmp_path / str(point))


@pytest.mark.slow
def test_what_shared_an_inode_gets_its_own_attributes(story: Story, tmp_path: Path) -> None:
    """Without any cut: from moved and copied to what has other modes."""
    down = story.downstream(tmp_path, story.publish("b"))
    for which in ("b", "c", "back", "b"):
        up = story.publish(which)
        down.configure(content_urls=(str(up.tree),))
        if which in {"back", "b"}:
            down.run("sync", down.name, "--accept-rollback")
        finish(down, up)
        assert rsync_differences(up, down) == ""
