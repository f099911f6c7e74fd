"""A sync: from one commit to the next, under another filter, with a hook, of reused files."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from huai_client.config.hooks import Hooks
from huai_client.config.modes import Modes
from tests.fault.killing import Ground, Hit
from tests.fault.story import Story, commit_and_keep, finish
from tests.support.partial_mirrors import RELEASES, assert_selected, grown
from tests.support.upstream import SECONDS, T0, Downstream, Pair, Site, Upstream


@dataclass
class Syncing:
    """A downstream at an upstream's first commit, or at none, and its second commit."""

    story: Story
    up: Upstream
    down: Downstream

    def __post_init__(self) -> None:
        self.folders = [self.down.dest, self.down.root]


def from_the_first(ground: Ground) -> Syncing:
    up = ground.story.publish("b")
    return Syncing(ground.story, up, ground.story.downstream(ground.folder, up))


def from_nothing(ground: Ground) -> Syncing:
    up = ground.story.publish("b")
    return Syncing(ground.story, up, ground.story.downstream(ground.folder, up, empty=True))


def run(scene: Syncing) -> int:
    return scene.down.sync().code


def index_is_last(scene: Syncing, _: Hit) -> str:
    """A new index is there only with all that it may name, and nothing is deleted before it."""
    dest = scene.down.dest
    index = dest / "dists/stable/Release"
    if index.exists() and index.read_bytes() == b"22":
        assert (dest / "only-in-b").read_bytes() == b"2"
        assert (dest / "moved/new/file").read_bytes() == b"2"
        assert (dest / "stays/1").read_bytes() == b"rewritten 2"
        return "new"
    assert not index.exists() or (dest / "goes/deep/er").read_bytes() == b"1"
    return "old"


def anything(_scene: object, _hit: Hit) -> None:
    """Accept any state."""


def _finished(newest: str, scene: Syncing, _: Hit) -> None:
    """The next sync ends well, wherever the upstream is then."""
    up = scene.story.publish(newest)
    scene.down.configure(content_urls=(str(up.tree),))
    finish(scene.down, up)
    scene.story.publish("b")


finished = partial(_finished, "b")
at_the_third = partial(_finished, "c")
back_at_the_first = partial(_finished, "back")


# Files that are moved and copied.

FILES = 12
LARGE = os.urandom(200_000)


def three_commits(place: Site, duplicates: str) -> Story:
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
    down = place.downstream(up, duplicates=duplicates, modes=Modes.EXACT)
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


def _reusing(duplicates: str, ground: Ground) -> Syncing:
    story = three_commits(ground.site, duplicates)
    up = story.publish("b")
    return Syncing(story, up, story.downstream(ground.folder, up))


copying = partial(_reusing, "copy")
hardlinking = partial(_reusing, "hardlink")


def _check_hardlinks(newest: str, scene: Syncing, hit: Hit) -> None:
    """Check that files share inodes only as they do upstream, also in transit."""
    _finished(newest, scene, hit)
    tree = scene.story.publish(newest).tree
    names = [path.relative_to(tree) for path in tree.rglob("*") if path.is_file()]
    assert len({(scene.down.dest / name).stat().st_ino for name in names}) == len(names)
    scene.story.publish("b")


PARTED = [partial(_check_hardlinks, which) for which in ("b", "c", "back")]


def on_and_back(scene: Syncing, _: Hit) -> None:
    """Files that shared an inode get their own attributes."""
    for which in ("b", "c", "back", "b"):
        up = scene.story.publish(which)
        scene.down.configure(content_urls=(str(up.tree),))
        scene.down.run("sync", scene.down.name, "--accept-rollback")
        finish(scene.down, up)


# With a hook.

COLLECT = """#!/bin/sh -e
cat "$HUAI_WRITTEN_LIST" "$HUAI_DELETED_LIST" "$HUAI_ATTRIBUTES_LIST" >>"$1"
"""


class Hooked(Syncing):
    """The same with `on_change`, which collects what it is told."""

    def __init__(self, ground: Ground) -> None:
        scene = from_the_first(ground)
        super().__init__(scene.story, scene.up, scene.down)
        self.report = hooked(self.down, ground.folder)
        self.before = looks(self.down.dest)
        self.folders.append(self.report.parent)


def hooked(down: Downstream, folder: Path) -> Path:
    """Collect what `on_change` is told, in the file that is returned."""
    program, report = folder / "collect", folder / "collected/told"
    report.parent.mkdir()
    program.write_text(COLLECT)
    program.chmod(0o755)
    down.configure(hooks=Hooks(on_change=(str(program), str(report))))
    return report


def looks(top: Path) -> dict[bytes, tuple[object, ...]]:
    """Return the entry at each path: a hook has to hear of each that changes."""
    entries: dict[bytes, tuple[object, ...]] = {}
    for folder, names, files in os.walk(os.fsencode(top)):
        for name in (*names, *files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            content = b""
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path):
                content = Path(os.fsdecode(path)).read_bytes()
            relative = os.path.relpath(path, os.fsencode(top))
            entries[relative] = (status.st_mode, status.st_mtime_ns, content)
    return {path: look for path, look in entries.items() if not path.startswith(b".~tmp~")}


def each_change_is_told(scene: Hooked, _: Hit) -> None:
    """By the next run at the latest."""
    finish(scene.down, scene.up)
    after, before = looks(scene.down.dest), scene.before
    paths = {*scene.report.read_bytes().split(b"\0")}
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    assert changed
    assert [path for path in sorted(changed) if not _is_told(path, paths)] == []


def _is_told(path: bytes, reported: set[bytes]) -> bool:
    parts = path.split(b"/")
    above = {b"/".join(parts[:number]) + b"/" for number in range(1, len(parts) + 1)}
    return path in reported or bool(above & reported)


# Under another filter.

IMAGES = ("- /dists/", "- /pool/?", "- /images/link")
OLD = "- /pool/old/?"


@dataclass
class Filtering:
    """A downstream whose filter changed; what it leads to is `rules`."""

    up: Upstream
    down: Downstream
    rules: tuple[str, ...]

    def __post_init__(self) -> None:
        self.folders = [self.down.dest, self.down.root]
        self.down.configure(filter=self.rules)


def _selected(ground: Ground) -> Pair:
    up = grown(ground.site)
    urls = (str(up.tree),)
    down = ground.site.downstream(up, filter=RELEASES, content_urls=urls, max_delete="100%")
    down.synced()
    return up, down


def filtered(ground: Ground) -> Filtering:
    return Filtering(*_selected(ground), IMAGES)


def filtered_and_newer(ground: Ground) -> Filtering:
    """The upstream changed as well."""
    up, down = _selected(ground)
    up.put(b"images/one.txt", b"another")
    up.at(b"dists/stable/main/3").unlink()
    up.commit()
    return Filtering(up, down, IMAGES)


def deletions_that_waited(ground: Ground) -> Filtering:
    """Their directories get their times back, though no snapshot differs there."""
    up, down = _selected(ground)
    down.configure(delete_after="1h", filter=(OLD, *RELEASES))
    assert down.synced()["delayed"] == 5
    down.configure(delete_after="0")
    return Filtering(up, down, (OLD, "- /images/one.txt", *RELEASES))


def _follows(rules: Callable[[Filtering], tuple[str, ...]], scene: Filtering, _: Hit) -> None:
    scene.down.configure(filter=rules(scene))
    scene.down.synced()
    assert_selected(scene.up, scene.down, rules(scene))
    assert scene.down.state.attempted == ()


follows_it = partial(_follows, lambda scene: scene.rules)
follows_the_one_before = partial(_follows, lambda _: RELEASES)
follows_none = partial(_follows, lambda _: ())
