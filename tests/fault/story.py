"""An upstream with a past, for downstreams that are cut on their way through it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.rewriting import Rewriting
from tests.support.upstream import SECONDS, Downstream, Site, Upstream, rsync_differences


@dataclass
class Story:
    """An upstream with four commits, a copy of its tree at each, and a downstream at the first."""

    up: Upstream
    down: Downstream
    commits: dict[str, str]

    @property
    def first_tree(self) -> Path:
        """The upstream's tree as it was first."""
        return self.up.tree.with_name(f"{self.up.name}-a")

    def publish(self, which: str) -> Upstream:
        """Let the upstream be at one of its commits; the upstream as it was then."""
        Rewriting(self.up.places.repository).point(self.commits[which])
        tree = self.up.tree.with_name(f"{self.up.name}-{which}")
        return Upstream(self.up.name, tree, self.up.root)

    def downstream(self, folder: Path, up: Upstream, *, empty: bool = False) -> Downstream:
        """A downstream that is at the first commit, or has nothing yet."""
        down = Downstream(self.up.name, folder / "dest", folder / "root")
        if empty:
            down.dest.mkdir(parents=True)
            down.root.mkdir()
            shutil.copy(self.down.root / "client.toml", down.root)
        else:
            for source, target in ((self.down.dest, down.dest), (self.down.root, down.root)):
                target.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "-a", source, target], check=True, timeout=SECONDS)
        down.configure(dest=str(down.dest), content_urls=(str(up.tree),))
        return down


def commit_and_keep(up: Upstream, which: str) -> str:
    """Commit, keep a copy of the tree next to it, and return the commit's id."""
    commit = up.commit().head.commit
    copy = up.tree.with_name(f"{up.name}-{which}")
    subprocess.run(["cp", "-a", up.tree, copy], check=True, timeout=SECONDS)
    return commit


def four_commits(place: Site) -> Story:
    """Tell the story at `place`."""
    up = place.upstream()
    commits = {}

    def commit(which: str) -> None:
        commits[which] = commit_and_keep(up, which)

    first(up)
    commit("a")
    down = place.downstream(up)
    down.synced()
    second(up)
    commit("b")
    third(up)
    commit("c")
    shutil.rmtree(up.tree)
    subprocess.run(["cp", "-a", f"{up.tree}-a", up.tree], check=True, timeout=SECONDS)
    commit("back")
    return Story(up, down, commits)


def first(up: Upstream) -> None:
    up.many(b"moves", 150)
    up.many(b"stays", 10)
    up.put(b"becomes-folder", b"1")
    up.put(b"becomes-file/a/b", b"1")
    up.put(b"goes/deep/er", b"1")
    up.put(b"h/one", b"linked")
    up.at(b"h/two").hardlink_to(up.at(b"h/one"))
    up.put(b"closed/file", b"1")
    up.at(b"closed").chmod(0o555)
    up.put(b"dists/stable/Release", b"1")
    os.symlink("stays", up.at(b"link"))


def second(up: Upstream) -> None:
    up.at(b"moves").rename(up.at(b"moved"))
    os.symlink("moved", up.at(b"moves"))
    up.put(b"moved/1", b"rewritten in what moved", mtime=2)
    up.at(b"moved/2").unlink()
    up.at(b"moved/3").unlink()
    up.put(b"moved/3/instead", b"2")
    up.put(b"moved/new/file", b"2")
    up.at(b"becomes-folder").unlink()
    up.put(b"becomes-folder/x/y", b"2")
    shutil.rmtree(up.at(b"becomes-file"))
    up.put(b"becomes-file", b"2")
    shutil.rmtree(up.at(b"goes"))
    up.at(b"h/one").unlink()
    up.put(b"h/one", b"alone now", mtime=2)
    up.at(b"h/three").hardlink_to(up.at(b"h/two"))
    # In place: the times of their directories do not change.
    up.put(b"closed/file", b"22", mtime=2)
    up.put(b"stays/1", b"rewritten 2", mtime=2)
    up.at(b"stays/2").chmod(0o600)
    up.put(b"only-in-b", b"2")
    up.put(b"dists/stable/Release", b"22", mtime=2)
    up.at(b"link").unlink()
    os.symlink("h", up.at(b"link"))


def third(up: Upstream) -> None:
    up.at(b"moves").unlink()
    up.at(b"moved").rename(up.at(b"archive"))
    up.at(b"archive/4").unlink()
    up.put(b"archive/1", b"3", mtime=3)
    up.at(b"only-in-b").unlink()
    up.at(b"becomes-file").unlink()
    up.put(b"becomes-file/again", b"3")
    up.put(b"stays/1", b"3", mtime=3)
    up.at(b"h/one").unlink()
    up.put(b"dists/stable/Release", b"333", mtime=3)


def finish(
    down: Downstream,
    up: Upstream,
    compare: Callable[[Upstream, Downstream], str] = rsync_differences,
) -> None:
    """One more run, and all is as it should be."""
    done = down.run("sync", down.name)
    assert done.code == 0, done
    differences = compare(up, down)
    assert differences == "", differences
    verified = down.verify("--content")
    assert verified.code == 0, verified
    assert not (down.dest / ".~tmp~").exists()
    assert down.state.attempted == ()
