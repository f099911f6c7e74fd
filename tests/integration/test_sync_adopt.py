"""Trees that rsync made, local damage, and looking before leaping."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.local_trees import fingerprint
from tests.support.upstream import (
    ENVIRONMENT,
    SECONDS,
    T0,
    Downstream,
    Site,
    Upstream,
    assert_equal,
    rsync_differences,
)


def rsync(up: Upstream, down: Downstream, *options: str) -> None:
    command = ["rsync", *options, f"{up.tree}/", f"{down.dest}/"]
    subprocess.run(command, env=ENVIRONMENT, timeout=SECONDS, check=True)


@pytest.fixture(name="pair")
def committed_pair(place: Site) -> tuple[Upstream, Downstream]:
    up = place.upstream()
    up.many(b"folder", 50)
    up.put(b"file", b"content")
    up.at(b"twin").hardlink_to(up.at(b"file"))
    os.symlink("file", up.at(b"link"))
    up.commit()
    return up, place.downstream(up)


def test_a_tree_made_by_rsync_is_adopted(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    rsync(up, down, "-aH")
    before = (down.dest / "file").stat().st_ino
    result = down.synced()
    assert result["summary"]["fetches"] == 0
    assert (down.dest / "file").stat().st_ino == before
    assert_equal(up, down)


def test_only_real_differences_are_fetched(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    rsync(up, down, "-aH")
    (down.dest / "folder" / "7").unlink()
    (down.dest / "folder" / "8").write_bytes(b"something else")
    (down.dest / "folder" / "9").chmod(0o600)
    result = down.synced()
    assert result["summary"]["fetches"] == 2
    assert_equal(up, down)


def test_without_times_digests_decide(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    rsync(up, down, "-rlH")
    damaged = down.dest / "folder" / "1"
    damaged.write_bytes(b"X" * damaged.stat().st_size)
    result = down.synced()
    assert result["summary"]["fetches"] == 1
    assert_equal(up, down)


def test_lost_hardlinks_are_made_again(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    rsync(up, down, "-a")
    result = down.synced()
    assert (result["summary"]["fetches"], result["summary"]["links"]) == (0, 1)
    assert_equal(up, down)


def test_wrong_hardlinks_are_parted(place: Site) -> None:
    up = place.upstream()
    for name in (b"a", b"b", b"c", b"d"):
        up.put(name, b"same")
    up.at(b"b2").hardlink_to(up.at(b"b"))
    up.commit()
    down = place.downstream(up)
    rsync(up, down, "-aH")
    for twin in ("b", "b2", "c"):
        (down.dest / twin).unlink()
        (down.dest / twin).hardlink_to(down.dest / "a")
    down.synced()
    assert_equal(up, down)
    links = [(down.dest / name).stat().st_nlink for name in ("a", "b", "b2", "c")]
    assert links == [1, 2, 2, 1]


def test_extraneous_files_are_told_and_kept(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    rsync(up, down, "-aH")
    (down.dest / "folder" / "mine").write_text("mine")
    (down.dest / "my" / "own").mkdir(parents=True)
    ended = down.sync()
    assert ended.code == 0, ended
    assert "3 paths are in no snapshot" in ended.err
    assert "--delete-extraneous" in ended.err
    assert (down.dest / "folder" / "mine").exists()
    assert (down.dest / "my" / "own").exists()
    assert down.sync("--adopt", "--delete-extraneous").code == 0
    assert_equal(up, down)


def test_deletions_have_a_limit(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    for index in range(40):
        up.at(b"folder/%d" % index).unlink()
    up.put(b"new", b"new")
    up.commit()
    before, state = fingerprint(down.dest), down.state_file.read_bytes()
    ended = down.sync("--max-delete", "39", "--json")
    assert ended.code == 25
    error = ended.events("error")[0]
    assert "40 of 55 entries would be deleted, more than the 39" in error["message"]
    assert "--max-delete 40" in error["hint"]
    assert (fingerprint(down.dest), down.state_file.read_bytes()) == (before, state)
    assert down.sync("--max-delete", "some").code == 40
    assert down.sync("--max-delete", "40").code == 0
    assert_equal(up, down)


def test_the_limit_as_a_share(place: Site) -> None:
    up = place.upstream(digest="off")
    up.many(b"folder", 1200, size=1)
    down = place.synced_downstream(up)
    for index in range(1100):
        up.at(b"folder/%d" % index).unlink()
    up.commit()
    assert down.sync().code == 25
    down.configure(max_delete="95%")
    down.synced()
    assert_equal(up, down)


def test_a_plan_changes_nothing(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    up.put(b"new", b"1")
    up.at(b"file").unlink()
    os.symlink("/outside", up.at(b"leads-out"))
    up.commit()
    before, state = fingerprint(down.dest), down.state_file.read_bytes()
    ended = down.run("plan", down.name)
    assert ended.code == 0
    assert "fetch      new" in ended.out
    assert "1 symlink leads out of the tree, for example leads-out" in ended.err
    assert down.sync("--dry-run").out == ended.out
    assert (fingerprint(down.dest), down.state_file.read_bytes()) == (before, state)
    down.synced()
    assert_equal(up, down)


def test_a_plan_before_the_first_sync(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    planned = down.plan()
    assert ("fetch", "file") in planned
    assert list(down.dest.iterdir()) == []
    assert not down.state_file.exists()
    down.synced()
    assert_equal(up, down)


def test_verify_lists_what_differs(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    assert down.verify().code == 47  # never synced
    down.synced()
    assert down.verify().code == 0
    damaged = down.dest / "folder" / "1"
    status = damaged.stat()
    damaged.write_bytes(b"X" * status.st_size)
    os.utime(damaged, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert down.verify().code == 0
    ended = down.verify("--content", "--json")
    assert ended.code == 47
    found = [(event["path"], event["attributes"]) for event in ended.events("difference")]
    assert found == [("folder/1", ["digest"])]
    assert down.verify("--content", "--repair").code == 0
    assert_equal(up, down)


def test_repair_mends_everything(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    (down.dest / "folder" / "1").unlink()
    (down.dest / "folder" / "2").unlink()
    (down.dest / "folder" / "2").mkdir()
    (down.dest / "folder" / "3").chmod(0)
    (down.dest / "link").unlink()
    (down.dest / "twin").unlink()
    (down.dest / "twin").write_bytes(b"content")
    (down.dest / "unknown").write_bytes(b"content")
    state = down.state
    ended = down.verify("--repair", "--json")
    assert ended.code == 0, ended
    assert (down.dest / "unknown").exists()
    assert down.state == state
    assert down.verify("--repair", "--delete-extraneous").code == 0
    assert_equal(up, down)


def test_repair_of_a_damaged_hardlink_group(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    (down.dest / "file").write_bytes(b"CONTENT")
    os.utime(down.dest / "file", ns=(T0, T0))
    assert down.verify("--content", "--repair").code == 0
    assert_equal(up, down)


def test_repair_goes_back_to_the_applied_commit(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    applied = down.state.applied
    up.put(b"newer", b"newer")
    up.commit()
    (down.dest / "link").unlink()
    assert down.verify("--repair").code == 0
    assert down.state.applied == applied
    assert not (down.dest / "newer").exists()
    down.synced()
    assert_equal(up, down)


def test_extraneous_files_in_a_directory_that_goes(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    (down.dest / "folder" / "mine").write_text("mine")
    for path in up.at(b"folder").iterdir():
        path.unlink()
    up.at(b"folder").rmdir()
    up.commit()
    ended = down.sync()
    assert ended.code == 0, ended
    assert "folder: kept, it holds what no snapshot names" in ended.err
    assert [path.name for path in (down.dest / "folder").iterdir()] == ["mine"]
    assert down.state.attempted == ()


def test_an_extraneous_file_where_a_file_comes(
    pair: tuple[Upstream, Downstream], tmp_path: Path
) -> None:
    up, down = pair
    down.synced()
    (down.dest / "new").symlink_to(tmp_path)
    (down.dest / "other").write_text("local")
    up.put(b"new/file", b"1")
    up.put(b"other", b"upstream's")
    up.commit()
    down.synced()
    assert list(tmp_path.iterdir()) == []
    assert rsync_differences(up, down) == ""
    assert_equal(up, down)


def test_quiet_says_nothing_of_symlinks_that_lead_out(place: Site, tmp_path: Path) -> None:
    """The log file and the events have it; a timer's mail has not."""
    up = place.upstream()
    up.at(b"leads-out").symlink_to("/etc")
    up.commit()
    log = tmp_path / "log"
    done = place.downstream(up).sync("--quiet", "--log-file", str(log))
    assert (done.code, done.out, done.err) == (0, "", "")
    assert "1 symlink leads out of the tree" in log.read_text(encoding="utf-8")
    told = place.downstream(up).sync("--quiet", "--json").events("warning")
    assert ["leads out" in each["message"] for each in told] == [True]
