"""A sync with a trash, and an undo."""

import os
import shutil
from dataclasses import dataclass

from huai_client.tree import STAGING
from tests.fault.killing import KILLED, Ground, Hit
from tests.support.system_calls import CHANGING, Cut, supervise
from tests.support.upstream import Downstream, Ended, Upstream, rsync_differences


@dataclass
class Trashing:
    """An upstream at its second commit, a copy of its first tree, and the command that is cut."""

    up: Upstream
    before: Upstream
    down: Downstream
    command: str = "sync"

    def __post_init__(self) -> None:
        self.folders = [self.down.dest, self.down.root]
        self.applied = self.down.state.applied


def to_sync(ground: Ground) -> Trashing:
    """The first two commits of the story, with a trash from the first one on."""
    story = ground.story
    up = story.publish("b")
    down = story.downstream(ground.folder, up)
    down.configure(trash="7d")
    return Trashing(up, Upstream(up.name, story.first_tree, up.root), down)


def to_undo(ground: Ground) -> Trashing:
    scene = to_sync(ground)
    scene.down.synced()
    return Trashing(scene.up, scene.before, scene.down, "undo")


def to_undo_settings(ground: Ground) -> Trashing:
    """A sync to the applied commit did not end: only settings differ."""
    scene = to_sync(ground)
    down = scene.down
    down.synced()
    link = down.dest / "link"
    link.unlink()
    link.mkdir()
    (link / "in-the-way").touch()
    down.configure(protect=("/none",))
    assert down.sync().code == 23
    shutil.rmtree(link)
    return Trashing(scene.up, scene.up, down, "undo")


def deletions_that_are_due(ground: Ground) -> Trashing:
    up = ground.site.upstream()
    up.many(b"pool", 6)
    up.put(b"stays", b"1")
    up.commit()
    urls = (str(up.tree),)
    down = ground.site.downstream(up, content_urls=urls, trash="7d", delete_after="1h")
    down.synced()
    shutil.rmtree(up.at(b"pool"))
    up.commit()
    down.synced()
    down.configure(delete_after="0")
    return Trashing(up, up, down)


def run(scene: Trashing) -> int:
    return scene.down.run(scene.command, scene.down.name).code


def assert_succeeded(ended: Ended) -> None:
    assert ended.code == 0, ended


def assert_is(down: Downstream, up: Upstream) -> None:
    assert rsync_differences(up, down) == ""
    assert_succeeded(down.verify("--content"))
    assert down.state.attempted == ()


def is_begun(scene: Trashing, _: Hit) -> bool:
    """True if there is something to undo, or the undo has begun."""
    state = scene.down.state
    if scene.command == "undo":
        return bool(state.held == scene.applied)
    return bool(state.attempted or state.before)


def finished_then_undone(scene: Trashing, _: Hit) -> None:
    down = scene.down
    assert_succeeded(down.sync())
    assert_is(down, scene.up)
    assert not (down.dest / os.fsdecode(STAGING)).exists()
    assert_succeeded(down.run("undo", down.name))
    assert_is(down, scene.before)


def undone_then_synced(scene: Trashing, hit: Hit) -> None:
    down, begun = scene.down, is_begun(scene, hit)
    ended = down.run("undo", down.name)
    assert (ended.code == 0) is begun, ended
    if begun:
        assert_is(down, scene.before)
        assert_succeeded(down.sync("--unhold"))
        assert_is(down, scene.up)


def finished_by_a_sync(scene: Trashing, hit: Hit) -> None:
    """Continue the undo, if it has begun."""
    down, begun = scene.down, is_begun(scene, hit)
    ended = down.sync()
    if begun:
        # Cut at its very end, it needs no second one.
        assert ended.code == 0 or down.state.before == "", ended
        assert down.state.held == scene.applied
        assert_is(down, scene.before)
    else:
        assert_succeeded(ended)
        assert_is(down, scene.up)


def finished_by_an_undo(scene: Trashing, _: Hit) -> None:
    down = scene.down
    ended = down.run("undo", down.name)
    assert ended.code == 0 or down.state.before == "", ended
    assert down.state.held == scene.applied
    assert_is(down, scene.before)


def given_up(scene: Trashing, _: Hit) -> None:
    assert_succeeded(scene.down.sync("--unhold"))
    assert_is(scene.down, scene.up)
    assert scene.down.state.held == ""


def cut_twice(scene: Trashing, hit: Hit) -> None:
    """The undo is interrupted, and so is the sync that would finish it."""
    down = scene.down
    if down.state.attempted:
        supervise(CHANGING, lambda: down.sync().code, Cut(5, KILLED.answer))
        assert_succeeded(down.sync())
        assert_is(down, scene.before)
    else:
        finished_by_an_undo(scene, hit)


def kept_in_the_trash(scene: Trashing, _: Hit) -> None:
    assert_succeeded(scene.down.sync())
    assert_is(scene.down, scene.up)
    names = {path.name for path in scene.down.dest.glob(".~tmp~/huai-trash/*/pool/*")}
    assert names == {*"012345"}
