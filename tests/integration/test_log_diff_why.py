"""The output of `log`, `diff` and `why` for a real mirror, without a request to the upstream."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from huai_client.state import history
from huai_client.state.paths import ModulePlaces, module_places
from huai_client.state.state import module_lock
from tests.support.processes import children, until
from tests.support.rewriting import Rewriting
from tests.support.upstream import T0, Downstream, Site, Upstream

NO_URL = "http://127.0.0.1:9"
"""An address on which no server listens."""


def two_commits(place: Site) -> Downstream:
    """Serial 1 applied, then serial 2, with every kind of change; then the upstream is gone."""
    up = place.upstream()
    up.many(b"dists/a", 3)
    up.put(b"dists/a/Release", b"old")
    up.put(b"pool/moved", b"the same content")
    up.put(b"pool/gone", b"gone")
    up.put(b"pool/touched", b"touched")
    down = place.synced_downstream(up)
    up.put(b"dists/a/Release", b"newer", mtime=T0 + 10**9)
    up.at(b"elsewhere").mkdir()
    up.at(b"pool/moved").rename(up.at(b"elsewhere/moved"))
    up.at(b"pool/gone").unlink()
    up.put(b"pool/touched", b"touched", mtime=T0 + 10**9)
    update(up, down, b"pool/new", b"new")
    down.configure(url=NO_URL)
    return down


@pytest.fixture(name="down")
def downstream(place: Site) -> Downstream:
    return two_commits(place)


@pytest.fixture(name="unchanged", scope="module")
def downstream_of_many_tests(place: Site) -> Downstream:
    return two_commits(place)


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    up = place.upstream()
    up.put(b"a", b"one")
    return up


def update(up: Upstream, down: Downstream, path: bytes, content: bytes, mtime: int = T0) -> None:
    up.put(path, content, mtime=mtime)
    up.commit()
    down.synced()


def places(down: Downstream) -> ModulePlaces:
    return module_places(down.root, down.name)


def read_events(down: Downstream, kind: str, command: str, *arguments: str) -> list[dict[str, Any]]:
    ended = down.run(command, down.name, *arguments, "--json")
    assert ended.code == 0, ended
    return ended.events(kind)


def diff(down: Downstream, *arguments: str) -> dict[str, dict[str, Any]]:
    return {event["path"]: event for event in read_events(down, "change", "diff", *arguments)}


def explain(down: Downstream, path: str) -> dict[str, Any]:
    return read_events(down, "why", "why", path)[0]


def print_why(down: Downstream, path: str) -> str:
    return down.run("why", down.name, path).out


def log_runs(down: Downstream) -> list[dict[str, Any]]:
    return read_events(down, "run", "log")


def log_path(down: Downstream, path: str) -> list[dict[str, Any]]:
    return read_events(down, "path", "log", path)


def read_plan(down: Downstream) -> dict[str, Any]:
    return read_events(down, "plan", "plan")[0]


def check(down: Downstream, name: str) -> dict[str, Any]:
    checks = down.run("doctor", down.name, "--json").events("check")
    (finding,) = [check for check in checks if check["check"] == name]
    return finding


def test_log_lists_each_run_newest_first(down: Downstream) -> None:
    first = log_runs(down)[-1]
    assert (first["from_serial"], first["to_serial"], first["code"]) == (None, 1, 0)
    assert first["done"]["published"] == 7
    (down.dest / "pool/new").write_bytes(b"bad")
    assert down.verify().code == 47
    assert down.sync().code == 10
    assert down.sync().code == 10
    runs = log_runs(down)
    assert [(run["run"], run["outcome"], run["times"]) for run in runs] == [
        ("sync", "NETWORK", 2),
        ("verify", "DIFFERS", 1),
        ("sync", "OK", 1),
        ("sync", "OK", 1),
    ]
    assert runs[1]["differences"] == 1
    assert (runs[2]["from_serial"], runs[2]["to_serial"]) == (1, 2)
    assert runs[2]["to_commit"] == down.state.applied
    assert runs[2]["done"]["removed"] == 2
    failed, _, last = down.run("log", down.name, "-n", "3").out.splitlines()
    assert "serial 1 → 2" in last
    assert last.endswith("ok")
    assert "NETWORK (10)" in failed
    assert "1 change of attributes, 2 removed, 4 directories touched" in last
    assert "2 times" in failed


def test_log_has_a_run_that_was_killed(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up, bwlimit=200)
    up.put(b"big", os.urandom(2 << 20))
    up.commit()
    process = down.spawn("sync", down.name)
    try:
        until(lambda: log_runs(down)[0]["outcome"] != "OK")
        newest = log_runs(down)[0]
        assert (newest["outcome"], newest["code"]) == ("RUNNING", None)
        assert "runs now" in down.run("log", down.name).out
        assert check(down, "history")["result"] == "ok"
    finally:
        kill_all(process)
    assert "serial 1 → 2" in down.run("log", down.name).out
    assert "interrupted" in down.run("log", down.name).out
    assert check(down, "history")["result"] == "warn"
    down.configure(bwlimit=0)
    down.synced()
    assert [run["outcome"] for run in log_runs(down)] == ["OK", "CUT", "OK"]


def kill_all(process: subprocess.Popen[str]) -> None:
    """Kill a client, and the runs of rsync that it started and left behind."""
    below = children(process.pid)
    process.kill()
    for child in below:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)  # it ends its own child too
    process.communicate(timeout=30)


def test_diff_names_every_kind_of_change(unchanged: Downstream) -> None:
    changes = diff(unchanged, "1..2")
    # Whether times of directories differ depends on the clock of the machine.
    leaves = {
        path: (event["change"], event["source"], event["attributes"])
        for path, event in changes.items()
        if event["new"] is None or event["new"]["type"] == "file"
    }
    assert leaves == {
        "dists/a/Release": ("changed", None, ["digest", "mtime", "size"]),
        "elsewhere/moved": ("moved", "pool/moved", []),
        "pool/gone": ("removed", None, []),
        "pool/new": ("added", None, []),
        "pool/touched": ("changed", None, ["mtime"]),
    }
    assert changes["elsewhere"]["change"] == "added"
    for names in ("previous..applied", "1", f"1..{unchanged.state.applied}"):
        assert diff(unchanged, names) == changes
    assert diff(unchanged) == changes
    assert diff(unchanged, "applied..") == {}
    back = diff(unchanged, "2..1")
    assert back["pool/moved"]["source"] == "elsewhere/moved"
    assert back["pool/gone"]["change"] == "added"


def test_diff_counts(unchanged: Downstream) -> None:
    (event,) = read_events(unchanged, "", "diff", "1..2", "--summary")
    assert event["type"] == "diff"
    assert (event["from_serial"], event["to_serial"]) == (1, 2)
    assert (event["moved"], event["removed"], event["removed_bytes"]) == (1, 1, len(b"gone"))
    assert event["added_bytes"] == len(b"new")
    assert event["changed_bytes"] == len(b"newer")
    assert "1 removed (4 B)" in unchanged.run("diff", unchanged.name, "1..2", "--summary").out
    lines = unchanged.run("diff", unchanged.name, "1..2")
    assert "=> elsewhere/moved  (from pool/moved)" in lines.out.splitlines()
    assert "~  dists/a/Release  (digest, mtime, size)" in lines.out.splitlines()
    assert "serial 1 → 2" in lines.err


def test_diff_shows_what_plan_has_fetched(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up)
    up.put(b"b", b"b")
    up.commit()
    assert diff(down) == {}
    down.plan()
    assert diff(down)["b"]["change"] == "added"
    reason = explain(down, "b")
    assert reason["there"] is None
    assert reason["here"]["status"] == "nothing"
    assert reason["next_sync"]["serial"] == 2
    assert reason["next_sync"]["operations"] == [
        {"operation": "fetch", "detail": "1 byte, payload"}
    ]


def test_plan_shows_stages_bytes_and_time(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool", 4, size=1000)
    up.put(b"dists/a/Release", b"r")
    up.commit()
    down = place.downstream(up)
    plan = read_plan(down)
    stages = [(stage["stage"], stage["fetches"], stage["fetch_bytes"]) for stage in plan["stages"]]
    assert stages == [("payload", 4, 4000), ("pointers", 1, 1)]
    assert plan["seconds"] is None
    text = down.run("plan", down.name).out
    assert "payload: 4 files to fetch (4,000 bytes)" in text
    assert "time: unknown" in text
    down.synced()
    up.many(b"pool/more", 5, size=1000)
    up.commit()
    plan = read_plan(down)
    (run,) = history.read(places(down).history)
    expected = run.seconds * max(1, 5000 / run.received)
    assert plan["seconds"] == pytest.approx(expected, abs=0.06)
    assert "time: about" in down.run("plan", down.name).out
    down.synced()
    up.at(b"pool/1").rename(up.at(b"pool/moved"))
    up.commit()
    (stage,) = read_plan(down)["stages"]
    assert (stage["fetches"], stage["reused"], stage["reused_bytes"]) == (0, 1, 1000)
    text = down.run("plan", down.name).out
    assert "payload: 1 from local files (1,000 bytes)" in text


def test_a_long_plan_begins_with_its_summary(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool", 30)
    up.commit()
    down = place.downstream(up)

    def count_fetches(lines: list[str]) -> int:
        return sum(line.startswith("fetch ") for line in lines)

    *lines, last = down.run("plan", down.name).out.splitlines()
    assert lines[0].startswith(f"{down.name}: 30 files to fetch")
    assert count_fetches(lines) < 20
    assert last.startswith("and ")
    assert "--list" in last
    full = down.run("plan", down.name, "--list").out.splitlines()
    assert full[: len(lines)] == lines
    assert count_fetches(full) == 30
    assert len(down.plan()) > 30


def test_a_commit_that_is_not_here(unchanged: Downstream, subtests: pytest.Subtests) -> None:
    for name in ("9", "previous..x", "abc", "..1.."):
        with subtests.test(name):
            ended = unchanged.run("diff", unchanged.name, name)
            assert ended.code == 1
            assert "has no commit" in ended.err
            assert "serials 1, 2" in ended.err


def test_only_so_many_commits_stay(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up, keep_commits=2)
    for number in range(1, 5):
        update(up, down, b"a", b"%d" % number, T0 + number)
    lines = down.run("log", down.name).out.splitlines()
    assert len(lines) > 2
    assert down.run("log", down.name, "--number", "2").out.splitlines() == lines[:2]
    of_path = down.run("log", down.name, "a").out.splitlines()
    assert down.run("log", down.name, "a", "-n", "1").out.splitlines() == of_path[:1]
    assert diff(down, "3..5")["a"]["change"] == "changed"
    assert down.run("diff", down.name, "2..5").code == 1
    assert [event["serial"] for event in log_path(down, "a")] == [5, 4, 3]
    down.configure(keep_commits=0)
    update(up, down, b"a", b"last", T0 + 9)
    assert down.run("diff", down.name, "5..6").code == 1


def test_a_path_is_followed_to_where_it_was(unchanged: Downstream) -> None:
    new, old = log_path(unchanged, "elsewhere/moved")
    assert (new["serial"], new["change"], new["source"]) == (2, "moved", "pool/moved")
    assert (old["serial"], old["path"], old["known_since"]) == (1, "pool/moved", False)
    away, _ = log_path(unchanged, "pool/moved")
    assert (away["path"], away["source"]) == ("elsewhere/moved", "pool/moved")
    removed, added = log_path(unchanged, str(unchanged.dest / "pool" / "gone"))
    assert (removed["change"], added["serial"]) == ("removed", 1)
    changes = [event["change"] for event in log_path(unchanged, "pool/touched")]
    assert changes == ["changed", "added"]
    assert log_path(unchanged, "nowhere") == []
    assert "pool/moved" in unchanged.run("log", unchanged.name, "elsewhere/moved").out


def test_why_shows_commit_stage_rule_and_tree(down: Downstream) -> None:
    down.configure(publish=("pointers /pool/new",))
    reason = explain(down, "pool/new")
    assert reason["applied"]["serial"] == 2
    assert reason["there"]["size"] == 3
    assert (reason["brought"]["serial"], reason["brought"]["change"]) == (2, "added")
    assert reason["stage"]["stage"] == "pointers"
    assert reason["stage"]["rule_of"] == "client.toml"
    assert reason["here"]["status"] == "as applied"
    assert reason["next_sync"]["operations"] == []
    release = explain(down, "dists/a/Release")
    assert release["stage"]["stage"] == "pointers"
    assert release["stage"]["rule_of"].startswith("the profile")
    rule = "pointers, by the rule 'pointers /pool/new' of client.toml"
    assert rule in print_why(down, "pool/new")


def test_why_sees_what_others_did_to_the_tree(down: Downstream) -> None:
    os.utime(down.dest / "pool/new", ns=(T0, T0 + 1))
    reason = explain(down, "pool/new")
    assert reason["here"] == {
        "status": "differs",
        "attributes": ["mtime"],
        "entry": {**reason["there"], "mtime_ns": T0 + 1, "digest": None},
        "reason": "",
    }
    (down.dest / "pool/touched").unlink()
    assert explain(down, "pool/touched")["here"]["status"] == "missing"
    (down.dest / "unknown").write_bytes(b"x")
    assert explain(down, "unknown")["here"]["status"] == "extraneous"
    assert "verify --repair repairs them" in print_why(down, "pool/touched")
    (down.dest / "pool").rename(down.dest / "hidden")
    (down.dest / "pool").symlink_to("hidden")
    assert explain(down, "pool/new")["here"]["status"] == "missing"


def test_why_shows_when_it_was_verified(down: Downstream) -> None:
    before = explain(down, "pool/new")["verified"]
    assert before is None or before["content"] is None
    start = int(time.time())
    assert down.verify().code == 0
    verified = explain(down, "pool/new")["verified"]
    assert (verified["part"], verified["content"]) == (".", None)
    assert start <= verified["metadata"] <= time.time()
    assert "content never" in print_why(down, "pool/new")
    assert down.verify("--content").code == 0
    assert start <= explain(down, "pool/new")["verified"]["content"] <= time.time()


def test_why_shows_deletions_that_wait(up: Upstream, place: Site) -> None:
    up.put(b"goes", b"g")
    down = place.synced_downstream(up, delete_after="1h")
    up.at(b"goes").unlink()
    up.commit()
    down.plan()
    (operation,) = explain(down, "goes")["next_sync"]["operations"]
    assert operation["operation"] == "delayed"
    down.synced()
    reason = explain(down, "goes")
    assert reason["delayed"]["until"] - reason["delayed"]["since"] == 3600
    assert reason["there"] is None
    assert reason["here"]["status"] == "extraneous"
    assert "to be deleted since" in print_why(down, "goes")


def test_the_upstream_goes_back_to_a_commit_that_is_here(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up)
    first = down.state.applied
    update(up, down, b"a", b"three")
    up.put(b"a", b"one")
    Rewriting(up.places.repository).point(str(first))
    assert down.sync().code == 46
    # What was refused is not the newest.
    assert diff(down, "applied..newest") == {}
    assert down.synced("--accept-rollback")["serial"] == 1
    runs = [(run["from_serial"], run["to_serial"], run["outcome"]) for run in log_runs(down)]
    assert runs[:2] == [(2, 1, "OK"), (2, 2, "ROLLED_BACK")]
    assert diff(down, "2..1")["a"]["change"] == "changed"
    assert down.verify("--content").code == 0


def test_why_shows_which_filter_rule_decides(place: Site) -> None:
    up = place.upstream()
    up.put(b"iso/big.iso", b"big")
    up.put(b"iso/big.txt", b"text")
    down = place.synced_downstream(up, filter=("- *.iso",), protect=("/iso/own",))
    reason = explain(down, "iso/big.iso")
    assert reason["there"]["size"] == 3
    assert not reason["filter"]["let_through"]
    assert reason["filter"]["rule"].endswith(" *.iso")
    assert reason["here"]["status"] == "nothing"
    assert explain(down, "iso/big.txt")["filter"] == {
        "let_through": True,
        "protected": False,
        "rule": None,
        "place": None,
        "matched": None,
    }
    text = print_why(down, "iso/big.iso")
    assert "excludes it" in text
    assert "*.iso" in text
    assert explain(down, "iso/own")["protected"]
    assert "never touched" in print_why(down, "iso/own")
    # The next sync goes by the filter of now.
    down.configure(filter=())
    (operation,) = explain(down, "iso/big.iso")["next_sync"]["operations"]
    assert operation["operation"] == "fetch"


def test_why_shows_what_a_sync_would_refuse(place: Site) -> None:
    up = place.upstream()
    up.many(b"d", 3)
    down = place.synced_downstream(up, max_delete="0")
    up.at(b"d/1").unlink()
    up.commit()
    assert down.run("plan", down.name).code == 25
    assert "1 of" in explain(down, "d/1")["next_sync"]["refusal"]


def test_a_tree_that_is_held_after_an_undo(up: Upstream, place: Site) -> None:
    down = place.synced_downstream(up, trash="1d")
    update(up, down, b"a", b"three")
    assert down.run("undo", down.name).code == 0
    assert "undo" in down.run("log", down.name).out
    assert "held" in explain(down, "a")["next_sync"]["refusal"]
    state = check(down, "state")
    assert state["result"] == "warn"
    assert "--unhold" in state["fix"]


def test_a_path_in_no_commit(unchanged: Downstream) -> None:
    """A slash in front counts from the top of the module."""
    assert "etc/passwd: in no commit" in unchanged.run("log", unchanged.name, "/etc/passwd").err
    for path in ("/etc/passwd", "pool/nosuch"):
        ended = unchanged.run("why", unchanged.name, path)
        assert ended.code == 1, ended
        assert f"{path.lstrip('/')}: neither here nor in any commit that is here" in ended.err
        assert "as it should be" not in ended.out
    events = unchanged.run("why", unchanged.name, "pool/nosuch", "--json").events()
    assert [event["type"] for event in events] == ["why", "error"]


def test_a_path_that_leads_upwards_is_refused(
    unchanged: Downstream, subtests: pytest.Subtests
) -> None:
    for command, path in product(("log", "why"), ("../x", "a/../b")):
        with subtests.test(command=command, path=path):
            ended = unchanged.run(command, unchanged.name, path)
            assert ended.code == 1
            assert "relative to the top of the module" in ended.err


def test_a_module_that_was_never_synced(place: Site) -> None:
    down = place.downstream(place.upstream())
    assert down.run("log", down.name).code == 0
    assert down.run("log", down.name, "a").code == 47
    assert down.run("diff", down.name).code == 47
    assert down.run("why", down.name, "a").code == 47
    assert not places(down).repository.exists()
    assert down.run("log", "unknown").code == 45
    down.dest.rmdir()
    assert down.sync().code == 52
    assert "serial" not in down.run("log", down.name).out


def test_they_work_while_a_sync_runs(down: Downstream) -> None:
    with module_lock(places(down), wait=0):
        assert down.sync().code == 43
        assert log_runs(down)
        assert diff(down, "1..2")
        assert explain(down, "pool/new")
