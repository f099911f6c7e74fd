"""Trust in local files, and the ways to use them."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.diff.candidate import Reuse
from huai_client.diff.reuse import ANY_NUMBER
from huai_client.run.options import Deadline
from huai_client.staging import Staging
from huai_client.transfer.local import LocalContent, Reused, ReusePolicy
from huai_client.tree import Tree
from huai_schema.entries import File
from tests.support.local_trees import T0, at, content, file
from tests.support.staged import ready

SIZE = 5000
OLD = file(b"d/old", SIZE)
NEW = OLD._replace(path=at(b"new"))
MOVE = Reuse(OLD.path, T0, most_links=1)
COPY = MOVE._replace(most_links=0)
EVER, NEVER = 1 << 62, 0
DONE = {"linked": Reused(1, 0, 0, SIZE), "copied": Reused(0, 0, 1, SIZE), "": Reused()}


def either(reused: Reused) -> Reused:
    """Skips a test of copies on file systems with reflinks."""
    return reused._replace(cloned=0, copied=reused.cloned + reused.copied)


class Ground:
    """A tree with one file, and its staging area."""

    def __init__(self, dest: Path) -> None:
        self.dest = dest
        self.old = dest / "d/old"
        self.old.parent.mkdir()
        self.write(content(OLD.path, SIZE))
        self.tree = Tree(dest)
        self.staging = Staging(dest / ".~tmp~" / "huai")

    def write(self, data: bytes) -> None:
        self.old.write_bytes(data)
        self.old.chmod(0o644)
        os.utime(self.old, ns=(T0, T0))

    def reuse(self, file: File, reuse: Reuse, until: int = EVER) -> Reused:
        with LocalContent(self.tree, self.staging, ReusePolicy(until, hardlink=False)) as local:
            local.stage_local([file], {file.path: reuse})
            return either(local.reused())

    def inode_of(self, file: File) -> int:
        return ready(self.staging, file).stat().st_ino

    def close(self) -> None:
        self.staging.close()
        self.tree.close()


@pytest.fixture
def ground(short_path: Path) -> Iterator[Ground]:
    ground = Ground(short_path)
    yield ground
    ground.close()


def test_a_file_that_goes_gives_its_inode(ground: Ground) -> None:
    assert ground.reuse(NEW, MOVE) == DONE["linked"]
    assert ground.inode_of(NEW) == ground.old.stat().st_ino


def test_a_file_that_stays_is_copied(ground: Ground) -> None:
    before = ground.old.stat()
    assert ground.reuse(NEW, COPY) == DONE["copied"]
    staged = ready(ground.staging, NEW)
    assert staged.read_bytes() == content(OLD.path, SIZE)
    assert staged.stat().st_mtime_ns == T0
    after = ground.old.stat()
    assert (after.st_ctime_ns, after.st_nlink) == (before.st_ctime_ns, 1)


@pytest.mark.parametrize("changes", [{"mode": 0o600}, {"mtime": 5}, {"owner": b"daemon"}])
def test_attributes_never_reach_the_old_name(ground: Ground, changes: dict[str, int]) -> None:
    if "owner" in changes and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    file = NEW._replace(**changes)  # type: ignore[arg-type]
    assert ground.reuse(file, MOVE) == DONE["copied"]


def test_an_inode_with_more_names_than_go_is_not_given(ground: Ground) -> None:
    os.link(ground.old, ground.dest / "other")
    assert ground.reuse(NEW, MOVE) == DONE["copied"]


def test_equal_files_may_be_hardlinks(ground: Ground) -> None:
    os.link(ground.old, ground.dest / "other")
    share = MOVE._replace(most_links=ANY_NUMBER)
    assert ground.reuse(NEW, share) == DONE["linked"]
    other_mode = OLD._replace(path=at(b"other"), mode=0o600)
    assert ground.reuse(other_mode, share) == DONE["copied"]


def test_a_file_does_not_become_its_own_link(ground: Ground) -> None:
    assert ground.reuse(OLD, MOVE) == DONE["copied"]


@pytest.mark.parametrize(("reuse", "how"), [(MOVE, "linked"), (COPY, "copied")])
def test_what_was_changed_since_is_read(ground: Ground, reuse: Reuse, how: str) -> None:
    ground.write(content(OLD.path, SIZE))
    assert ground.reuse(NEW, reuse, time.time_ns() - 10**10) == DONE[how]


@pytest.mark.parametrize("reuse", [MOVE, COPY])
def test_other_content_under_the_same_size_and_time(ground: Ground, reuse: Reuse) -> None:
    ground.write(content(b"something else", SIZE))
    assert ground.reuse(NEW, reuse, NEVER) == DONE[""]
    assert not ground.staging.ready(NEW)
    assert ground.reuse(NEW, reuse._replace(sure=False)) == DONE[""]
    assert not ground.staging.ready(NEW)


def test_without_a_digest_nothing_that_was_changed(ground: Ground) -> None:
    file = NEW._replace(digest=None)
    assert ground.reuse(file, MOVE, NEVER) == DONE[""]
    assert ground.reuse(file, MOVE._replace(sure=False)) == DONE[""]
    assert ground.reuse(file, MOVE) == DONE["linked"]


@pytest.mark.parametrize("kind", ["time", "size", "symlink", "above", "absent", "folder", "fifo"])
def test_something_else_stands_there(ground: Ground, kind: str) -> None:
    old = ground.old
    if kind == "time":
        os.utime(old, ns=(T0, T0 + 1))
    elif kind == "size":
        ground.write(b"short")
    elif kind == "above":
        old.parent.rename(ground.dest / "real")
        old.parent.symlink_to("real")
    else:
        old.rename(ground.dest / "real")
        if kind == "symlink":
            old.symlink_to("../real")
        elif kind == "folder":
            old.mkdir()
        elif kind == "fifo":
            os.mkfifo(old)
    assert ground.reuse(NEW, MOVE) == DONE[""]
    assert not ground.staging.ready(NEW)


def test_another_tree_is_read_and_never_linked(ground: Ground, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "f").write_bytes(content(OLD.path, SIZE))
    os.utime(other / "f", ns=(7, 7))
    reuse = Reuse(at(b"f"), 7, most_links=ANY_NUMBER, sure=False, tree=str(other))
    assert ground.reuse(NEW, reuse) == DONE["copied"]
    assert (other / "f").stat().st_nlink == 1


def test_another_tree_that_is_not_there(ground: Ground, tmp_path: Path) -> None:
    assert ground.reuse(NEW, COPY._replace(tree=str(tmp_path / "none"))) == DONE[""]


def test_content_is_repeated(ground: Ground) -> None:
    ground.reuse(NEW, COPY)
    twin = NEW._replace(path=at(b"twin"), mode=0o600, mtime=9)
    alike = NEW._replace(path=at(b"alike"))
    lost = NEW._replace(path=at(b"lost"))
    files = [NEW, twin, alike, lost._replace(path=at(b"absent"))]
    first = Reuse(NEW.path, T0, twin=True)
    reuses = {twin.path: first, alike.path: first, lost.path: Reuse(at(b"absent"), T0, twin=True)}
    with LocalContent(ground.tree, ground.staging, ReusePolicy(EVER, hardlink=True)) as local:
        local.copy_twins([twin, alike, lost], files, reuses)
        local.copy_twins([alike], files, reuses)
        assert either(local.reused()) == Reused(1, 0, 1, 2 * SIZE)
    assert not ground.staging.ready(lost)
    assert ready(ground.staging, twin).read_bytes() == content(OLD.path, SIZE)
    assert ground.inode_of(alike) == ground.inode_of(NEW)


def test_nothing_is_taken_when_the_time_is_up(ground: Ground) -> None:
    over = ReusePolicy(EVER, hardlink=False, deadline=Deadline(0))
    with LocalContent(ground.tree, ground.staging, over) as local:
        local.stage_local([NEW], {NEW.path: MOVE})
        assert local.reused() == Reused()
    assert not ground.staging.ready(NEW)


def test_what_a_cut_run_copied_is_taken_over(ground: Ground) -> None:
    ground.reuse(NEW, COPY)
    before = ground.inode_of(NEW)
    half = NEW._replace(path=at(b"half"))
    (ready(ground.staging, NEW).parent / "half").write_bytes(b"half of it")
    ground.staging.close()
    with Staging(ground.dest / ".~tmp~" / "huai") as staging:
        staging.recover([NEW, half])
        assert ready(staging, NEW).stat().st_ino == before
        assert not staging.ready(half)
        with LocalContent(ground.tree, staging, ReusePolicy(EVER, hardlink=False)) as local:
            local_files = local.stage_local([NEW, half], {NEW.path: COPY, half.path: COPY})
            assert local_files.ready == [NEW, half]
            assert local.reused().files == 1


def test_links_of_a_cut_run_are_dropped_and_copies_kept(ground: Ground) -> None:
    ground.reuse(NEW, MOVE)
    copied = NEW._replace(path=at(b"copied"))
    ground.reuse(copied, COPY)
    ground.staging.prune([NEW, copied])
    assert not ground.staging.ready(NEW)
    assert ground.staging.ready(copied)
    assert ground.old.stat().st_nlink == 1
