"""Protected paths are never touched."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.local_trees import fingerprint
from tests.support.upstream import Downstream, Pair, Site, rsync_differences

PROTECT = ("/project/trace/my.host", "*.local", "/own/")


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    up.many(b"pool", 20)
    up.put(b"project/trace/upstream.host", b"theirs")
    up.put(b"project/trace/my.host", b"what they think of us")
    up.put(b"dists/sid/InRelease", b"pointer")
    up.put(b"gone/a", b"1")
    up.put(b"turns/a", b"1")
    up.commit()
    down = place.downstream(up, protect=PROTECT)
    (down.dest / "project/trace").mkdir(parents=True)
    write(down, "project/trace/my.host")
    write(down, "own/page.html")
    down.synced()
    return up, down


def write(down: Downstream, path: str, text: str = "ours") -> Path:
    place = down.dest / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def identity(path: Path) -> tuple[int, ...]:
    """Changes with any change to the file, its attributes and its place."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink


def test_a_protected_file_is_not_replaced(pair: Pair) -> None:
    up, down = pair
    mine = down.dest / "project/trace/my.host"
    before = identity(mine)
    up.put(b"project/trace/my.host", b"another thought of theirs", mtime=5)
    up.put(b"project/trace/upstream.host", b"newer")
    up.commit()
    assert down.synced()["summary"]["fetches"] == 1
    up.at(b"project/trace/my.host").unlink()
    up.commit()
    assert down.synced()["summary"]["deletions"] == 0
    assert down.sync("--adopt", "--delete-extraneous").code == 0
    assert (identity(mine), mine.read_text()) == (before, "ours")
    assert (down.dest / "own/page.html").exists()
    down.configure(protect=("",))  # which is not a pattern
    up.put(b"new", b"1")
    up.commit()
    tree = fingerprint(down.dest)
    assert down.sync().code == 40
    assert fingerprint(down.dest) == tree


def test_a_protected_path_is_not_damage(pair: Pair) -> None:
    _, down = pair
    assert down.verify("--content").code == 0
    # Its owner writes it again: the times of its directory change.
    (down.dest / "project/trace/my.host").unlink()
    write(down, "project/trace/my.host", "ours, later")
    write(down, "dists/sid/notes.local")
    write(down, "elsewhere/deep/notes.local")
    ended = down.verify("--content")
    assert ended.code == 0, ended
    write(down, "elsewhere/unknown", "whose?")
    ended = down.verify("--repair", "--delete-extraneous")
    assert ended.out.splitlines()[0] == "extraneous elsewhere/unknown"
    assert not (down.dest / "elsewhere/unknown").exists()
    assert (down.dest / "elsewhere/deep/notes.local").exists()


def test_a_protected_file_that_is_absent_is_not_written(place: Site) -> None:
    up = place.upstream()
    up.put(b"project/trace/my.host", b"theirs")
    up.put(b"a", b"1")
    up.commit()
    down = place.downstream(up, protect=PROTECT)
    assert down.synced()["summary"]["fetches"] == 1
    assert os.listdir(down.dest / "project/trace") == []
    assert down.verify("--repair").code == 0
    assert os.listdir(down.dest / "project/trace") == []


def test_a_directory_that_holds_one_stays(pair: Pair) -> None:
    up, down = pair
    protected = [write(down, path) for path in ("gone/x/y.local", "turns/y.local")]
    before = [identity(path) for path in protected]
    shutil.rmtree(up.at(b"gone"))
    shutil.rmtree(up.at(b"turns"))
    up.put(b"turns", b"a file now")
    up.put(b"pool/new", b"1")
    up.commit()
    result = down.synced()
    # All else of them goes, and nothing else waits for it.
    assert result["summary"]["deletions"] == 2
    assert [identity(path) for path in protected] == before
    assert not (down.dest / "gone/a").exists()
    assert (down.dest / "pool/new").exists()
    assert down.synced()["changed"] is False


@pytest.mark.parametrize("mine", ["moves/mine.local", "moves/deep/mine.local"])
def test_a_move_falls_apart(place: Site, mine: str) -> None:
    up = place.upstream()
    up.many(b"moves", 150)
    up.many(b"moves/deep", 150)
    down = place.synced_downstream(up, protect=PROTECT, delete_after="0")
    before = identity(write(down, mine))
    up.at(b"moves").rename(up.at(b"moved"))
    up.commit()
    result = down.synced()
    assert result["summary"]["moves"] == 0
    assert identity(down.dest / mine) == before
    assert [*down.dest.glob("moves/**/*.local")] == [down.dest / mine]
    assert down.verify("--content").code == 0


def test_other_moves_stay_moves(place: Site) -> None:
    up = place.upstream()
    up.many(b"moves", 150)
    up.many(b"own2", 150)
    down = place.synced_downstream(up, protect=("*.local", "/own2/secret"))
    up.at(b"moves").rename(up.at(b"moved"))
    up.at(b"own2").rename(up.at(b"own3"))
    up.commit()
    assert down.synced()["summary"]["moves"] == 1
    assert rsync_differences(up, down) == ""


def test_what_waits_is_protected_too(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool", 5)
    down = place.synced_downstream(up, delete_after="1h")
    up.at(b"pool/1").unlink()
    up.at(b"pool/2").unlink()
    up.commit()
    down.synced()
    down.configure(protect=("/pool/1",), delete_after="0")
    assert down.synced()["done"]["removed"] == 1
    assert (down.dest / "pool/1").exists()
    assert down.synced()["changed"] is False


def test_hardlinks_of_a_protected_file(place: Site) -> None:
    up = place.upstream()
    up.put(b"a.local", b"theirs")
    up.at(b"b").hardlink_to(up.at(b"a.local"))
    up.commit()
    down = place.downstream(up, protect=PROTECT)
    mine = write(down, "a.local")
    before = identity(mine)
    down.synced()
    assert (down.dest / "b").read_bytes() == b"theirs"
    assert identity(mine) == before
    assert down.verify("--content").code == 0
