"""Deletions that wait: recorded, shown, done by a later sync, cancelled, limited."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from huai_client.state import delayed_record
from tests.support.counting_proxy import counting
from tests.support.local_trees import fingerprint
from tests.support.upstream import (
    ENVIRONMENT,
    SECONDS,
    Downstream,
    Site,
    Upstream,
    assert_equal,
    rsync_differences,
)


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    up = place.upstream()
    up.many(b"pool/a", 5)
    up.many(b"pool/b", 5)
    up.put(b"dists/sid/Packages", b"index")
    up.put(b"dists/sid/InRelease", b"pointer")
    up.put(b"dists/old/InRelease", b"pointer")
    up.put(b"dists/old/Packages", b"index")
    return up


@pytest.fixture(name="down")
def downstream(up: Upstream, place: Site) -> Downstream:
    """A downstream whose next sync has to put deletions off."""
    down = place.synced_downstream(up, delete_after="1h")
    up.at(b"pool/a/0").unlink()
    shutil.rmtree(up.at(b"pool/b"))
    shutil.rmtree(up.at(b"dists/old"))
    up.commit()
    return down


@pytest.fixture(name="waiting")
def waiting_downstream(down: Downstream) -> Downstream:
    down.synced()
    return down


WAITING = {
    b"dists/old",
    b"dists/old/Packages",
    b"pool/a/0",
    b"pool/b",
    *(b"pool/b/%d" % number for number in range(5)),
}


def record(down: Downstream) -> Path:
    return down.state_file.with_name("delayed")


def waiting_paths(down: Downstream) -> set[bytes]:
    return {entry.path for entry in delayed_record.load(record(down))}


def planned_paths(down: Downstream) -> set[bytes]:
    events = down.run("plan", down.name, "--json").events("delayed")
    return {event["path"].encode() for event in events}


def age(down: Downstream) -> None:
    """Let the deletions become due."""
    entries = delayed_record.load(record(down))
    older = [entry._replace(since=entry.since - 3600) for entry in entries]
    delayed_record.save(record(down), older, now=1)


def test_deletions_wait(down: Downstream) -> None:
    assert ("delete", "dists/old/InRelease") in down.plan()
    assert planned_paths(down) == WAITING
    result = down.synced()
    # The pointer goes at once: no client is to begin reading there any more.
    assert result["done"]["removed"] == 1
    assert result["summary"]["delayed"] == result["delayed"] == len(WAITING)
    assert waiting_paths(down) == WAITING
    assert (down.dest / "pool/b/4").exists()
    assert not (down.dest / "dists/old/InRelease").exists()
    assert down.verify("--content").code == 0
    assert ", 9 delayed deletions" in down.run("status").out
    assert down.run("status", "--json").events("module")[0]["delayed"] == 9
    assert planned_paths(down) == WAITING
    assert down.sync("--adopt").code == 0
    assert waiting_paths(down) == WAITING


def test_before_they_are_due_no_file_is_touched(place: Site, waiting: Downstream) -> None:
    before = fingerprint(waiting.dest), record(waiting).stat().st_mtime_ns
    with counting(place.url) as counted:
        waiting.configure(url=counted.url)
        ended = waiting.process("sync", waiting.name)
    assert "nothing new" in ended.err
    assert len(counted.requests) == 1
    assert (fingerprint(waiting.dest), record(waiting).stat().st_mtime_ns) == before


def test_a_sync_without_news_deletes_what_is_due(
    place: Site, up: Upstream, waiting: Downstream
) -> None:
    state = waiting.state
    age(waiting)
    with counting(place.url) as counted:
        waiting.configure(url=counted.url)
        result = waiting.synced()
    assert len(counted.requests) == 1
    waiting.configure(url=place.url)
    assert result["done"]["removed"] == len(WAITING)
    assert waiting_paths(waiting) == set()
    assert waiting.state == state
    assert_equal(up, waiting)
    assert waiting.synced()["changed"] is False


def test_a_sync_with_news_deletes_what_is_due(up: Upstream, waiting: Downstream) -> None:
    age(waiting)
    up.put(b"pool/a/new", b"new")
    up.at(b"pool/a/1").unlink()
    up.commit()
    result = waiting.synced()
    assert (result["done"]["removed"], result["summary"]["delayed"]) == (len(WAITING), 1)
    assert waiting_paths(waiting) == {b"pool/a/1"}
    assert rsync_differences(up, waiting).split() == ["*deleting", "pool/a/1"]


def test_paths_that_come_back_stay(up: Upstream, waiting: Downstream) -> None:
    up.put(b"pool/b/3", (b"pool/b/3 " * 2)[:10])
    up.put(b"pool/a/0", b"another")
    up.commit()
    result = waiting.synced()
    # A file that is still here need not be fetched again.
    assert result["summary"]["fetches"] == 1
    assert waiting_paths(waiting) == WAITING - {b"pool/a/0", b"pool/b", b"pool/b/3"}
    age(waiting)
    waiting.synced()
    assert_equal(up, waiting)


def test_other_content_of_the_same_size_and_time_comes_back(
    up: Upstream, waiting: Downstream
) -> None:
    before = (waiting.dest / "pool/b/3").read_bytes()
    up.put(b"pool/b/3", before[::-1])
    up.commit()
    assert waiting.synced()["summary"]["fetches"] == 1
    # Without a delay the rest goes at once.
    waiting.configure(delete_after="0")
    waiting.synced()
    assert_equal(up, waiting)


@pytest.mark.parametrize("file", ["pool/b", "pool"])
def test_waiting_paths_make_way(up: Upstream, waiting: Downstream, file: str) -> None:
    if file == "pool":
        shutil.rmtree(up.tree / "pool")
    up.put(file.encode(), b"a file now")
    up.commit()
    waiting.synced()
    assert (waiting.dest / file).read_bytes() == b"a file now"
    age(waiting)
    waiting.synced()
    assert_equal(up, waiting)


def test_waiting_paths_move_along(place: Site) -> None:
    up = place.upstream()
    up.many(b"large", 300)
    down = place.synced_downstream(up, delete_after="1h")
    up.at(b"large/7").unlink()
    up.commit()
    down.synced()
    up.at(b"large").rename(up.at(b"renamed"))
    up.commit()
    assert down.synced()["summary"]["moves"] == 1
    assert waiting_paths(down) == {b"large", b"renamed/7"}
    age(down)
    down.synced()
    assert_equal(up, down)


def test_limits_hold_when_it_is_put_off_and_when_it_is_due(up: Upstream, down: Downstream) -> None:
    assert down.sync("--max-delete", "9").code == 25
    assert not record(down).exists()
    assert down.sync("--max-delete", "10").code == 0
    age(down)
    before = fingerprint(down.dest)
    ended = down.sync("--max-delete", "8")
    assert ended.code == 25
    assert "--max-delete 9" in ended.err
    assert fingerprint(down.dest) == before
    assert down.sync("--max-delete", "9").code == 0
    assert_equal(up, down)


def test_a_disk_that_is_not_mounted_forgets_nothing(up: Upstream, waiting: Downstream) -> None:
    age(waiting)
    away = waiting.dest.with_name(f"{waiting.dest.name}-away")
    waiting.dest.rename(away)
    waiting.dest.mkdir()
    assert waiting.sync().code == 52
    assert waiting_paths(waiting) == WAITING
    waiting.dest.rmdir()
    away.rename(waiting.dest)
    waiting.synced()
    assert_equal(up, waiting)


def test_an_extraneous_file_in_a_directory_that_is_due(waiting: Downstream) -> None:
    (waiting.dest / "pool/b/unknown").touch()
    (waiting.dest / "pool/b/4").unlink()
    age(waiting)
    ended = waiting.sync()
    assert ended.code == 0
    assert "pool/b: kept, because it contains files that are in no snapshot" in ended.err
    assert waiting_paths(waiting) == set()
    assert [path.name for path in (waiting.dest / "pool/b").iterdir()] == ["unknown"]


CUT = """
import os
from huai_client.tree import Tree
from huai_client.cli.main import main
remove = Tree.remove_entries
def limited(self, items):
    assert remove(self, items[:3]).done == 3
    os._exit(9)
Tree.remove_entries = limited
main()
"""


def test_a_run_that_is_cut_while_it_deletes(up: Upstream, waiting: Downstream) -> None:
    age(waiting)
    command = [sys.executable, "-c", CUT, "--root", str(waiting.root), "sync", waiting.name]
    ended = subprocess.run(command, env=ENVIRONMENT, timeout=SECONDS, check=False)
    assert ended.returncode == 9
    assert waiting_paths(waiting) == WAITING
    assert waiting.state.attempted == ()
    assert waiting.synced()["done"]["removed"] == len(WAITING) - 3
    assert_equal(up, waiting)
