"""Deletions that wait: recorded, shown, done by a later sync, cancelled, limited."""

import os
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


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> tuple[Upstream, Downstream]:
    up = place.upstream()
    up.many(b"pool/a", 5)
    up.many(b"pool/b", 5)
    up.put(b"dists/sid/Packages", b"index")
    up.put(b"dists/sid/InRelease", b"pointer")
    up.put(b"dists/old/InRelease", b"pointer")
    up.put(b"dists/old/Packages", b"index")
    down = place.synced_downstream(up, delete_after="1h")
    for path in (b"pool/a/0", b"pool/b/0", b"pool/b/1", b"pool/b/2", b"pool/b/3", b"pool/b/4"):
        up.at(path).unlink()
    up.at(b"pool/b").rmdir()
    for path in (b"dists/old/InRelease", b"dists/old/Packages"):
        up.at(path).unlink()
    up.at(b"dists/old").rmdir()
    up.commit()
    return up, down


WAITING = {
    b"dists/old",
    b"dists/old/Packages",
    b"pool/a/0",
    b"pool/b",
    *(b"pool/b/%d" % number for number in range(5)),
}


def record(down: Downstream) -> Path:
    return down.state_file.with_name("delayed")


def waits(down: Downstream) -> set[bytes]:
    return {each.path for each in delayed_record.load(record(down))}


def age(down: Downstream, seconds: int = 3600) -> None:
    """As if what waits had been waiting for so much longer."""
    entries = delayed_record.load(record(down))
    older = [each._replace(since=each.since - seconds) for each in entries]
    delayed_record.save(record(down), older, now=1)


def test_what_is_gone_waits(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    assert ("delete", "dists/old/InRelease") in down.plan()
    planned = down.run("plan", down.name, "--json").events("delayed")
    assert {event["path"].encode() for event in planned} == WAITING
    result = down.synced()
    # The pointer goes at once: nobody is to begin reading there any more.
    assert result["done"]["removed"] == 1
    assert result["summary"]["delayed"] == result["delayed"] == len(WAITING)
    assert waits(down) == WAITING
    assert (down.dest / "pool/b/4").exists()
    assert not (down.dest / "dists/old/InRelease").exists()
    assert down.verify("--content").code == 0
    assert ", 9 delayed deletions" in down.run("status").out
    assert down.run("status", "--json").events("module")[0]["delayed"] == 9
    listed = down.run("plan", down.name, "--json").events("delayed")
    assert {event["path"].encode() for event in listed} == WAITING
    assert down.sync("--adopt").code == 0
    assert waits(down) == WAITING


def test_nothing_due_touches_nothing(place: Site, pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    down.synced()
    before = fingerprint(down.dest), record(down).stat().st_mtime_ns
    with counting(place.url) as counted:
        down.configure(url=counted.url)
        ended = down.process("sync", down.name)
    assert "nothing new" in ended.err
    assert len(counted.requests) == 1
    assert (fingerprint(down.dest), record(down).stat().st_mtime_ns) == before


def test_a_sync_with_nothing_new_deletes_what_is_due(
    place: Site, pair: tuple[Upstream, Downstream]
) -> None:
    up, down = pair
    down.synced()
    state = down.state
    age(down)
    with counting(place.url) as counted:
        down.configure(url=counted.url)
        result = down.synced()
    assert len(counted.requests) == 1
    down.configure(url=place.url)
    assert result["done"]["removed"] == len(WAITING)
    assert waits(down) == set()
    assert down.state == state
    assert_equal(up, down)
    assert down.synced()["changed"] is False


def test_a_sync_with_news_deletes_what_is_due(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    age(down)
    up.put(b"pool/a/new", b"new")
    up.at(b"pool/a/1").unlink()
    up.commit()
    result = down.synced()
    assert (result["done"]["removed"], result["summary"]["delayed"]) == (len(WAITING), 1)
    assert waits(down) == {b"pool/a/1"}
    assert rsync_differences(up, down).split() == ["*deleting", "pool/a/1"]


def test_what_comes_back_does_not_go(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    up.put(b"pool/b/3", (b"pool/b/3 " * 2)[:10])
    up.put(b"pool/a/0", b"another")
    up.commit()
    result = down.synced()
    # What is still here need not be fetched again.
    assert result["summary"]["fetches"] == 1
    assert waits(down) == WAITING - {b"pool/a/0", b"pool/b", b"pool/b/3"}
    age(down)
    down.synced()
    assert_equal(up, down)


def test_other_content_of_the_same_size_and_time_comes_back(
    pair: tuple[Upstream, Downstream],
) -> None:
    up, down = pair
    down.synced()
    before = (down.dest / "pool/b/3").read_bytes()
    up.put(b"pool/b/3", before[::-1])
    up.commit()
    assert down.synced()["summary"]["fetches"] == 1
    down.configure(delete_after="0")
    down.synced()
    assert_equal(up, down)


@pytest.mark.parametrize("place_of_file", [b"pool/b", b"pool"])
def test_what_waits_makes_way(pair: tuple[Upstream, Downstream], place_of_file: bytes) -> None:
    up, down = pair
    down.synced()
    if place_of_file == b"pool":
        for path in up.at(b"pool/a").iterdir():
            path.unlink()
        up.at(b"pool/a").rmdir()
        up.at(b"pool").rmdir()
    up.put(place_of_file, b"a file now")
    up.commit()
    down.synced()
    assert (down.dest / os.fsdecode(place_of_file)).read_bytes() == b"a file now"
    age(down)
    down.synced()
    assert_equal(up, down)


def test_what_waits_moves_along(place: Site) -> None:
    up = place.upstream()
    up.many(b"large", 300)
    down = place.synced_downstream(up, delete_after="1h")
    up.at(b"large/7").unlink()
    up.commit()
    down.synced()
    up.at(b"large").rename(up.at(b"renamed"))
    up.commit()
    assert down.synced()["summary"]["moves"] == 1
    assert waits(down) == {b"large", b"renamed/7"}
    age(down)
    down.synced()
    assert_equal(up, down)


def test_limits_hold_when_it_is_put_off_and_when_it_is_due(
    pair: tuple[Upstream, Downstream],
) -> None:
    up, down = pair
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


def test_no_grace_any_more(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    down.configure(delete_after="0")
    down.synced()
    assert_equal(up, down)


def test_a_disk_that_is_not_mounted_forgets_nothing(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    age(down)
    away = down.dest.with_name(f"{down.dest.name}-away")
    down.dest.rename(away)
    down.dest.mkdir()
    assert down.sync().code == 52
    assert waits(down) == WAITING
    down.dest.rmdir()
    away.rename(down.dest)
    down.synced()
    assert_equal(up, down)


def test_an_extraneous_file_in_a_directory_that_is_due(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    down.synced()
    (down.dest / "pool/b/unknown").touch()
    (down.dest / "pool/b/4").unlink()
    age(down)
    ended = down.sync()
    assert ended.code == 0
    assert "pool/b: kept, it holds what no snapshot names" in ended.err
    assert waits(down) == set()
    assert [path.name for path in (down.dest / "pool/b").iterdir()] == ["unknown"]


def test_a_run_that_is_cut_while_it_deletes(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.synced()
    age(down)
    cut = (
        "import os\n"
        "from huai_client.tree import Tree\n"
        "from huai_client.cli.main import main\n"
        "remove = Tree.remove_entries\n"
        "def limited(self, items):\n"
        "    assert remove(self, items[:3]).done == 3\n"
        "    os._exit(9)\n"
        "Tree.remove_entries = limited\n"
        "main()\n"
    )
    command = [sys.executable, "-c", cut, "--root", str(down.root), "sync", down.name]
    ended = subprocess.run(command, env=ENVIRONMENT, timeout=SECONDS, check=False)
    assert ended.returncode == 9
    assert waits(down) == WAITING
    assert down.state.attempted == ()
    assert down.synced()["done"]["removed"] == len(WAITING) - 3
    assert_equal(up, down)


@pytest.mark.parametrize("text", [b"", b"huai-delayed 2 0 0\n", b"huai-delayed 1 1 5\n5\tx\ta\n"])
def test_a_record_that_nobody_wrote(pair: tuple[Upstream, Downstream], text: bytes) -> None:
    _, down = pair
    record(down).write_bytes(text)
    ended = down.sync()
    assert ended.code == 11
    assert "not a record of this program" in ended.err


@pytest.mark.parametrize("value", ["1y", "-1", "", "h", "1 h", "1.5h"])
def test_a_span_that_is_none(pair: tuple[Upstream, Downstream], value: str) -> None:
    _, down = pair
    config = down.root / "client.toml"
    config.write_text(config.read_text().replace('"1h"', f'"{value}"'))
    assert down.sync().code == 40
