"""The main job over real HTTP, a real rsync daemon and real trees."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from huai_client.config.modes import Modes
from tests.support.upstream import T0, Site, Upstream, assert_equal

NANOSECOND = 1_600_000_000_987_654_321


def fill(up: Upstream) -> None:
    """Something of every kind."""
    up.many(b"many", 300)
    up.put(b"top", b"top")
    up.put(b"deep/er/est/file", b"deep")
    up.put(b"odd/new\nline\t\\ \xff#;-'\"", b"odd")
    up.put(b"-leading", b"dash")
    up.put(b"trailing ", b"blank", mtime=NANOSECOND)
    up.put(b"empty")
    os.symlink("top", up.at(b"link"))
    os.symlink("/etc/passwd", up.at(b"absolute"))
    os.utime(up.at(b"link"), ns=(5, 7), follow_symlinks=False)
    up.put(b"h/one", b"linked" * 100)
    up.at(b"h/two").hardlink_to(up.at(b"h/one"))
    up.at(b"another").hardlink_to(up.at(b"h/one"))
    up.put(b"modes/suid", b"s", mode=0o4755)
    up.put(b"modes/none", b"n", mode=0o000)
    up.at(b"sticky").mkdir(mode=0o777)
    up.at(b"sticky").chmod(0o1777)
    up.at(b"setgid").mkdir()
    up.at(b"setgid").chmod(0o2775)
    up.put(b"readonly/file", b"r")
    up.at(b"readonly").chmod(0o555)
    with up.put(b"sparse", b"x").open("r+b") as sparse:
        sparse.truncate(20 << 20)
    up.put(b"n" * 255, b"long")
    up.put(b"/".join([b"d" * 200] * 15) + b"/file", b"deep")
    up.put(b"dists/sid/InRelease", b"pointer")
    up.at(b"pool").mkdir()
    up.at(b"pool/copy").hardlink_to(up.at(b"dists/sid/InRelease"))
    if os.geteuid() == 0:
        os.chown(up.put(b"owned", b"1"), 12345, 1)
        os.chown(up.put(b"games/nobody", b"1"), 65534, 65534)
    os.utime(up.tree, ns=(NANOSECOND, NANOSECOND))


def test_a_first_sync_brings_everything(place: Site) -> None:
    up = place.upstream()
    fill(up)
    up.commit()
    down = place.downstream(up, modes=Modes.EXACT)
    result = down.synced()
    assert result["changed"]
    assert result["summary"]["deletions"] == 0
    assert_equal(up, down)
    assert down.state.attempted == ()
    assert down.state.total_bytes == result["total_bytes"]
    assert os.stat(down.dest / "sparse").st_blocks < 100
    assert os.stat(down.dest / "h" / "two").st_nlink == 3
    assert os.readlink(down.dest / "absolute") == "/etc/passwd"


def inode(path: Path) -> int:
    return path.lstat().st_ino


def test_every_kind_of_change(place: Site) -> None:
    up = place.upstream()
    fill(up)
    for name in (b"to-dir", b"to-link", b"to-hard", b"grows", b"goes", b"edited"):
        up.put(name, b"file " + name)
    os.symlink("top", up.at(b"link-to-file"))
    os.symlink("top", up.at(b"link-to-dir"))
    for name in (b"dir-to-file", b"dir-to-link", b"dir-goes"):
        up.many(name + b"/sub/sub", 3)
    down = place.synced_downstream(up)
    for name in (b"to-dir", b"to-link", b"to-hard", b"goes", b"link-to-file", b"link-to-dir"):
        up.at(name).unlink()
    for name in (b"dir-to-file", b"dir-to-link", b"dir-goes", b"d" * 200):
        shutil.rmtree(up.at(name))
    up.put(b"to-dir/deep/file", b"now below")
    up.put(b"link-to-dir/file", b"below too")
    up.put(b"link-to-file", b"a file")
    up.put(b"dir-to-file", b"a file too")
    up.put(b"grows", b"x" * 100_000)
    up.put(b"edited", b"FILE edited")  # of the same size and time
    up.put(b"dists/sid/InRelease", b"a new pointer")
    os.symlink("nowhere", up.at(b"to-link"))
    os.symlink("h", up.at(b"dir-to-link"))
    up.at(b"to-hard").hardlink_to(up.at(b"top"))
    up.at(b"link").unlink()
    os.symlink("elsewhere", up.at(b"link"))
    up.at(b"h/one").unlink()
    up.at(b"modes/suid").chmod(0o755)
    up.at(b"sticky").chmod(0o755)
    up.at(b"readonly").chmod(0o755)
    up.put(b"readonly/file", b"changed")
    up.at(b"readonly").chmod(0o555)
    up.commit()
    down.synced()
    assert_equal(up, down)


@pytest.mark.parametrize("limit", ["batch_files=2", "batch_size=2000"])
def test_options_replace_keys_for_one_run(place: Site, tmp_path: Path, limit: str) -> None:
    """Each run of rsync writes its process number into the log that an option of ours names."""
    up = place.upstream()
    up.many(b"pool", 6, size=900)
    down = place.synced_downstream(up)
    for number in range(6):
        up.put(b"pool/%d" % number, b"%d" % number * 950)
    up.commit()
    log = tmp_path / "log"
    down.synced("-o", "streams=1", "-o", limit, "-o", f"rsync_options=--log-file={log}")
    runs = re.findall(r"\[(\d+)\] >f\S+ pool/(\d)$", log.read_text(), re.MULTILINE)
    assert sorted(name for _, name in runs) == [*"012345"]
    assert len({process for process, _ in runs}) == 3


@pytest.mark.parametrize("staying", [200, 1])
def test_a_renamed_directory_is_renamed(place: Site, staying: int) -> None:
    # With one file left, the old parent moves into its own parent's manifest.
    up = place.upstream()
    up.many(b"pool/stays", staying)
    up.many(b"pool/old", 200)
    up.many(b"pool/old/sub", 10)
    up.put(b"other", b"o")
    down = place.synced_downstream(up)
    inodes = {name: inode(down.dest / "pool/old" / name) for name in ("0", "199", "sub/9")}
    up.at(b"archive").mkdir()
    up.at(b"pool/old").rename(up.at(b"archive/new"))
    up.commit()
    assert ("move", "archive/new") in down.plan()
    result = down.synced()
    assert result["summary"]["moves"] == 1
    assert result["summary"]["fetches"] == 0
    assert result.get("received", 0) == 0
    assert {name: inode(down.dest / "archive/new" / name) for name in inodes} == inodes
    assert_equal(up, down)


def test_renamed_directories_that_leave_something_in_their_place(place: Site) -> None:
    """A symlink, a file where the parent was, and hardlinks from outside."""
    up = place.upstream()
    for folder in (b"5.0", b"release/packages", b"p/d"):
        up.many(folder, 200)
    up.put(b"p/a", b"shared")
    up.at(b"p/d/z").hardlink_to(up.at(b"p/a"))
    up.put(b"q/b", b"b")
    down = place.synced_downstream(up)
    up.at(b"5.0").rename(up.at(b"5.1"))
    os.symlink("5.1", up.at(b"5.0"))
    up.commit()
    result = down.synced()
    assert (result["summary"]["moves"], result["summary"]["fetches"]) == (1, 0)
    assert_equal(up, down)
    up.at(b"release/packages").rename(up.at(b"packages"))
    up.at(b"release").rmdir()
    up.put(b"release", b"see packages")
    up.at(b"p/d").rename(up.at(b"q/d"))
    up.at(b"p/a").rename(up.at(b"q/a"))
    up.commit()
    down.synced()
    assert_equal(up, down)


def test_a_touch_costs_no_content(place: Site) -> None:
    up = place.upstream()
    up.put(b"big", os.urandom(300_000))
    down = place.synced_downstream(up)
    before = inode(down.dest / "big")
    os.utime(up.at(b"big"), ns=(9, NANOSECOND))
    up.at(b"big").chmod(0o600)
    up.commit()
    # What changes attributes must not need rsync.
    ended = down.process("sync", down.name, "--json", environment={"PATH": "/nonexistent"})
    assert ended.code == 0, ended
    assert ended.events("sync")[0]["summary"]["fetches"] == 0
    assert inode(down.dest / "big") == before
    assert_equal(up, down)


@pytest.mark.parametrize(
    ("digest", "inserted", "cost"),
    [("now", b"!", 50_000), ("off", b"!", 50_000), ("off", b"", 10_000)],
)
def test_a_change_in_a_large_file_costs_a_delta(
    place: Site, digest: str, inserted: bytes, cost: int
) -> None:
    up = place.upstream(digest=digest)
    content = os.urandom(2_000_000)
    up.put(b"image", content)
    down = place.synced_downstream(up)
    up.put(b"image", content[:1_000_000] + inserted + content[1_000_000:], mtime=NANOSECOND)
    up.commit()
    assert down.synced()["received"] < cost
    assert_equal(up, down)


HARDLINK_CHANGES: tuple[Callable[[Any, bytes], object], ...] = (
    lambda up, at: up.at(at + b"a").unlink(),
    lambda up, at: up.at(at + b"b").unlink(),
    lambda up, at: (up.at(at + b"a").unlink(), up.put(at + b"a", b"alone", mtime=T0)),
    lambda up, at: (up.at(at + b"b").unlink(), up.put(at + b"b", b"shared", mtime=T0)),
    lambda up, at: (up.at(at + b"c").unlink(), up.at(at + b"c").hardlink_to(up.at(at + b"x"))),
    lambda up, at: (up.at(at + b"x").unlink(), up.at(at + b"x").hardlink_to(up.at(at + b"a"))),
    lambda up, at: (
        *(up.at(at + name).unlink() for name in (b"a", b"b")),
        up.put(at + b"b", b"shared"),
    ),
    lambda up, at: up.put(at + b"a", b"all three change"),
    lambda up, at: up.at(at + b"a").rename(up.at(at + b"z")),
    lambda up, at: (up.put(at + b"d/e", b"1"), up.at(at + b"aa").hardlink_to(up.at(at + b"d/e"))),
    lambda up, at: up.at(at + b"a").chmod(0o600),
)


def test_hardlink_groups_change(place: Site) -> None:
    """Each change is in a folder of its own."""
    up = place.upstream()
    folders = [b"%d/" % number for number in range(len(HARDLINK_CHANGES))]
    for at in folders:
        up.put(at + b"a", b"shared")
        up.at(at + b"b").hardlink_to(up.at(at + b"a"))
        up.at(at + b"c").hardlink_to(up.at(at + b"a"))
        up.put(at + b"x", b"other")
        up.at(at + b"y").hardlink_to(up.at(at + b"x"))
    down = place.synced_downstream(up)
    for at, change in zip(folders, HARDLINK_CHANGES, strict=True):
        change(up, at)
    up.commit()
    down.synced()
    assert_equal(up, down)


def test_the_order_of_publication(place: Site) -> None:
    up = place.upstream()
    for path in (b"pool/p", b"dists/sid/Packages", b"dists/sid/InRelease"):
        up.put(path, path)
    up.commit()
    down = place.downstream(up)
    fetched = [path for operation, path in down.plan() if operation == "fetch"]
    assert fetched == ["pool/p", "dists/sid/Packages", "dists/sid/InRelease"]


def test_a_symlink_made_here_is_not_traversed(place: Site, tmp_path: Path) -> None:
    up = place.upstream()
    up.many(b"a", 5)
    up.put(b"b", b"b")
    down = place.synced_downstream(up)
    (down.dest / "a").rename(tmp_path / "outside")
    (down.dest / "a").symlink_to(tmp_path / "outside")
    up.put(b"a/3", b"changed", mtime=NANOSECOND)
    up.at(b"a/4").unlink()
    up.commit()
    down.synced()
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == list("01234")
    assert (tmp_path / "outside" / "3").read_bytes() == b"a/3 a/3 a/"
    assert_equal(up, down)


@pytest.mark.parametrize("kind", ["file", "symlink"])
def test_a_file_where_a_directory_goes_is_replaced_and_kept(place: Site, kind: str) -> None:
    up = place.upstream()
    up.put(b"a", b"1")
    down = place.synced_downstream(up, trash="7d")
    strange = down.dest / "new"
    if kind == "file":
        strange.write_bytes(b"made here")
    else:
        strange.symlink_to("/etc/passwd")
    up.put(b"new/in", b"2")
    up.commit()
    down.synced()
    assert (down.dest / "new/in").read_bytes() == b"2"
    assert down.verify("--content").code == 0
    (trashed,) = (down.dest / ".~tmp~/huai-trash").glob("*/new")
    if kind == "file":
        assert trashed.read_bytes() == b"made here"
    else:
        assert os.readlink(trashed) == "/etc/passwd"


def test_something_else_of_the_reserved_name_is_refused(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"1")
    up.commit()
    down = place.downstream(up)
    reserved = down.dest / ".~tmp~"
    for make in (Path.touch, lambda path: path.symlink_to("/")):
        make(reserved)
        ended = down.sync()
        assert ended.code == 52
        assert "is not a directory" in ended.err
        assert "move it away" in ended.err
        reserved.unlink()
    down.synced()
