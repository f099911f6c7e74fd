"""Deletions that wait: recorded, shown, done by a later sync, cancelled, limited."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from huai_client.state import delayed_record
from tests.support.counting_proxy import counting
from tests.support.local_trees import fingerprint
from tests.support.upstream import Downstream, Site, Upstream, assert_equal, rsync_differences


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


def test_a_sync_without_news_deletes_what_is_due(
    place: Site, up: Upstream, waiting: Downstream
) -> None:
    before = fingerprint(waiting.dest), record(waiting).stat().st_mtime_ns
    state = waiting.state
    with counting(place.url) as counted:
        waiting.configure(url=counted.url)
        assert "nothing new" in waiting.process("sync", waiting.name).err
        assert len(counted.requests) == 1
        assert (fingerprint(waiting.dest), record(waiting).stat().st_mtime_ns) == before
        age(waiting)
        result = waiting.synced()
        assert len(counted.requests) == 2
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


def rename_around_a_waiting_path(place: Site) -> tuple[Upstream, Downstream]:
    """Rename a directory upstream, in which a path is gone that waits downstream."""
    up = place.upstream()
    up.many(b"large", 300)
    down = place.synced_downstream(up, delete_after="1h")
    up.at(b"large/7").unlink()
    up.commit()
    down.synced()
    up.at(b"large").rename(up.at(b"renamed"))
    return up, down


def test_waiting_paths_move_along(place: Site) -> None:
    up, down = rename_around_a_waiting_path(place)
    up.commit()
    assert down.synced()["summary"]["moves"] == 1
    assert waiting_paths(down) == {b"large", b"renamed/7"}
    age(down)
    down.synced()
    assert_equal(up, down)


def test_waiting_paths_move_along_in_a_run_that_fails(place: Site) -> None:
    up, down = rename_around_a_waiting_path(place)
    up.put(b"other/never", b"never")
    up.commit()
    up.at(b"other/never").unlink()
    assert down.sync().code == 24
    assert (down.dest / "large").is_symlink()
    up.commit()
    down.synced()
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


def test_limits_of_directories(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool", 20)
    up.put(b"dists/sid/InRelease", b"pointer")
    down = place.synced_downstream(up, max_delete_in={"/pool": "10%", "/dists": 1})
    for number in range(3):
        up.at(b"pool/%d" % number).unlink()
    up.commit()
    before = fingerprint(down.dest)
    ended = down.sync()
    assert ended.code == 25
    assert "3 of 21 entries in /pool would be deleted" in ended.err
    assert "--max-delete-in /pool=3" in ended.err
    assert fingerprint(down.dest) == before
    assert down.sync("--max-delete", "100%").code == 25
    assert down.run("plan", down.name).code == 25
    assert down.sync("--max-delete-in", "/pool=3").code == 0
    assert rsync_differences(up, down) == ""


@pytest.mark.parametrize("limits", [{"max_delete": 200}, {"max_delete_in": {"/pool": "50%"}}])
def test_limits_count_the_entries_of_a_renamed_directory(
    place: Site, limits: dict[str, Any]
) -> None:
    up = place.upstream()
    up.many(b"pool/a", 200)
    down = place.synced_downstream(up, **limits)
    up.at(b"pool/a").rename(up.at(b"b"))
    up.commit()
    assert down.sync().code == 25
    assert (down.dest / "pool/a/0").exists()
    result = down.synced("--max-delete=201", "--max-delete-in=/pool=201")
    assert result["summary"]["moves"] == 1
    assert_equal(up, down)


def test_a_limit_of_a_directory_that_does_not_exist_is_warned_of(place: Site) -> None:
    up = place.upstream()
    up.put(b"pool/a", b"text")
    up.put(b"dists/sid/InRelease", b"pointer")
    limits: dict[str, str | int] = {"/pool": 0, "/nosuch": 0, "/pool/a": 1, "/*": "100%"}
    down = place.downstream(up, max_delete_in=limits)
    up.commit()
    ended = down.sync()
    assert ended.code == 0
    for path in ("nosuch", "pool/a"):
        assert f"the tree has no directory /{path}: its limit has no effect" in ended.err
    assert ended.err.count("has no effect") == 2
    assert "published 1 file of the payload in" in ended.err
    assert ", 1 pointer in" in ended.err


def test_options_are_checked_also_where_nothing_is_new(
    place: Site, subtests: pytest.Subtests
) -> None:
    up = place.upstream()
    up.put(b"a", b"text")
    down = place.synced_downstream(up)
    for options, code in [
        ("--max-delete ten", 40),
        ("--max-delete-in /pool=ten", 40),
        ("--max-delete-in pool", 40),
        ("--bwlimit fast", 1),
        ("--bwlimit 10m", 0),
        ("--bwlimit 1.5MB", 0),
        ("-o streams=0", 1),
        ("-o streams", 1),
        ("-o dest=/srv", 1),
        ("-o batch_size=4x", 1),
        ("-o batch_size=4G -o timeout=60", 0),
    ]:
        with subtests.test(options):
            ended = down.sync(*options.split())
            assert ended.code == code
            assert ("nothing new" in ended.err) == (code == 0)


def test_extraneous_files_are_named(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"1")
    up.commit()
    down = place.downstream(up)
    names = [f"unknown{number}" for number in range(5)]
    for name in names:
        (down.dest / name).write_text("whose?")
    assert down.run("plan", down.name, "--delete-extraneous").err.count("extraneous") == 0
    ended = down.sync()
    assert "5 paths are in no snapshot and stay" in ended.err
    assert "unknown0, unknown1, unknown2 (" in ended.err
    assert [line.split()[1] for line in down.verify().out.splitlines()] == names
    assert down.verify("--repair").code == 0
    assert all((down.dest / name).exists() for name in names)
    assert down.synced("--adopt")["extraneous"] == 5
    assert down.synced("--adopt", "--delete-extraneous")["extraneous"] == 0
    assert not any((down.dest / name).exists() for name in names)
