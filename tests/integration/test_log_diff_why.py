"""What `log`, `diff` and `why` say of a real mirror, and that nobody has to ask the upstream."""

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any

import pytest

from huai_client.state import history
from huai_client.state.paths import module_places
from tests.support.processes import children, until
from tests.support.upstream import T0, Downstream, Site, Upstream

NO_URL = "http://127.0.0.1:9"
"""Nobody listens there."""


@pytest.fixture(name="pair")
def two_commits(place: Site) -> tuple[Upstream, Downstream]:
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
    up.put(b"pool/new", b"new")
    up.commit()
    down.synced()
    down.configure(url=NO_URL)
    return up, down


def listed(down: Downstream, *arguments: str) -> dict[str, dict[str, Any]]:
    ended = down.run("diff", down.name, *arguments, "--json")
    assert ended.code == 0, ended
    return {event["path"]: event for event in ended.events("change")}


def why(down: Downstream, path: str) -> dict[str, Any]:
    ended = down.run("why", down.name, path, "--json")
    assert ended.code == 0, ended
    return ended.events("why")[0]


def history_of(down: Downstream, path: str) -> list[dict[str, Any]]:
    ended = down.run("log", down.name, path, "--json")
    assert ended.code == 0, ended
    return ended.events("path")


def test_log_tells_of_each_run_newest_first(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    first = json.loads(down.run("log", down.name, "--json").out.splitlines()[-1])
    assert (first["from_serial"], first["to_serial"], first["code"]) == (None, 1, 0)
    assert first["done"]["published"] == 7
    (down.dest / "pool/new").write_bytes(b"bad")
    assert down.verify().code == 47
    assert down.sync().code == 10
    assert down.sync().code == 10
    runs = down.run("log", down.name, "--json").events("run")
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
    text = down.run("log", down.name, "-n", "3").out.splitlines()
    assert len(text) == 3
    assert "serial 1 → 2" in text[2]
    assert text[2].endswith("ok")
    assert "NETWORK (10)" in text[0]
    assert "2 times" in text[0]


def test_log_shows_the_newest_lines_only(place: Site) -> None:
    up = place.upstream()
    up.put(b"new", b"1")
    down = place.synced_downstream(up)
    for number in range(3):
        up.put(b"new", b"%d" % number)
        up.commit()
        down.synced()
    whole = down.run("log", down.name).out.splitlines()
    assert len(whole) > 2
    assert down.run("log", down.name, "--number", "2").out.splitlines() == whole[:2]
    of_path = down.run("log", down.name, "new").out.splitlines()
    assert down.run("log", down.name, "new", "-n", "1").out.splitlines() == of_path[:1]


def test_polls_that_find_nothing_new_are_not_told_of(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"a")
    down = place.synced_downstream(up)
    size = module_places(down.root, down.name).history.stat().st_size
    for _ in range(3):
        assert down.sync().code == 0
    assert module_places(down.root, down.name).history.stat().st_size == size
    # But a failure is not left as the last word.
    down.configure(url=NO_URL)
    assert down.sync().code == 10
    down.configure(url=place.url)
    assert down.sync().code == 0
    kinds = [run.outcome for run in history.read(module_places(down.root, down.name).history)]
    assert kinds == ["OK", "NETWORK", "OK"]


def test_a_run_that_was_killed_costs_the_log_nothing(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    place = module_places(down.root, down.name).history
    whole = place.read_bytes()
    place.write_bytes(whole + b'{"kind":"sync","ti')
    assert down.sync().code == 10
    outcomes = [run.outcome for run in history.read(place)]
    assert outcomes == ["NETWORK", "OK", "OK"]
    assert place.read_bytes().startswith(whole)


def test_a_run_that_was_killed_is_told_of(place: Site) -> None:
    up = place.upstream()
    up.put(b"small", b"small")
    down = place.synced_downstream(up, bwlimit=200)
    up.put(b"big", os.urandom(2 << 20))
    up.commit()
    process = down.spawn("sync", down.name)
    try:
        until(lambda: newest_run(down)["outcome"] != "OK")
        assert newest_run(down)["outcome"] == "RUNNING"
        assert newest_run(down)["code"] is None
        assert "runs now" in down.run("log", down.name).out
        assert results_of_history(down) == "ok"
    finally:
        kill_all(process)
    assert "serial 1 → 2" in down.run("log", down.name).out
    assert "interrupted" in down.run("log", down.name).out
    assert results_of_history(down) == "warn"
    down.configure(bwlimit=0)
    down.synced()
    outcomes = [run["outcome"] for run in down.run("log", down.name, "--json").events("run")]
    assert outcomes == ["OK", "CUT", "OK"]


def kill_all(process: subprocess.Popen[str]) -> None:
    """A client, and the runs of rsync that it started and left behind."""
    below = children(process.pid)
    process.kill()
    for child in below:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)  # it ends its own child too
    process.communicate(timeout=30)


def newest_run(down: Downstream) -> dict[str, Any]:
    return down.run("log", down.name, "--json").events("run")[0]


def results_of_history(down: Downstream) -> str:
    checks = down.run("doctor", down.name, "--json").events("check")
    (found,) = [check["result"] for check in checks if check["check"] == "history"]
    assert isinstance(found, str)
    return found


def test_diff_names_every_kind_of_change(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    changes = listed(down, "1..2")
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
    assert listed(down, "previous..applied") == changes
    assert listed(down, "1") == changes
    assert listed(down, f"1..{down.state.applied}") == changes
    back = listed(down, "2..1")
    assert back["pool/moved"]["source"] == "elsewhere/moved"
    assert back["pool/gone"]["change"] == "added"
    assert listed(down) == changes
    assert listed(down, "applied..") == {}


def test_diff_counts(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    ended = down.run("diff", down.name, "1..2", "--summary", "--json")
    (event,) = ended.events()
    assert event["type"] == "diff"
    assert (event["from_serial"], event["to_serial"]) == (1, 2)
    assert (event["moved"], event["removed"], event["removed_bytes"]) == (1, 1, len(b"gone"))
    assert event["added_bytes"] == len(b"new")
    assert event["changed_bytes"] == len(b"newer")
    text = down.run("diff", down.name, "1..2", "--summary").out
    assert "1 removed (4 B)" in text
    lines = down.run("diff", down.name, "1..2")
    assert "=> elsewhere/moved  (from pool/moved)" in lines.out.splitlines()
    assert "~  dists/a/Release  (digest, mtime, size)" in lines.out.splitlines()
    assert "serial 1 → 2" in lines.err


def test_diff_shows_what_plan_has_fetched(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"a")
    down = place.synced_downstream(up)
    up.put(b"b", b"b")
    up.commit()
    assert listed(down) == {}
    down.plan()
    assert listed(down)["b"]["change"] == "added"
    found = why(down, "b")
    assert found["there"] is None
    assert found["here"]["status"] == "nothing"
    assert found["next_sync"]["serial"] == 2
    assert found["next_sync"]["operations"] == [{"operation": "fetch", "detail": "1 byte, payload"}]


def test_plan_tells_stages_bytes_and_time(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool", 4, size=1000)
    up.put(b"dists/a/Release", b"r")
    up.commit()
    down = place.downstream(up)
    (plan,) = down.run("plan", down.name, "--json").events("plan")
    assert [(each["stage"], each["fetches"], each["fetch_bytes"]) for each in plan["stages"]] == [
        ("payload", 4, 4000),
        ("pointers", 1, 1),
    ]
    assert plan["seconds"] is None
    text = down.run("plan", down.name).out
    assert "payload: 4 files to fetch (4,000 bytes)" in text
    assert "time: unknown" in text
    down.synced()
    up.many(b"pool/more", 5, size=1000)
    up.commit()
    (plan,) = down.run("plan", down.name, "--json").events("plan")
    (run,) = history.read(module_places(down.root, down.name).history)
    expected = run.seconds * max(1, 5000 / run.received)
    assert plan["seconds"] == pytest.approx(expected, abs=0.06)
    assert "time: about" in down.run("plan", down.name).out
    down.synced()
    up.at(b"pool/1").rename(up.at(b"pool/moved"))
    up.commit()
    (plan,) = down.run("plan", down.name, "--json").events("plan")
    (stage,) = plan["stages"]
    assert (stage["fetches"], stage["reused"], stage["reused_bytes"]) == (0, 1, 1000)
    text = down.run("plan", down.name).out
    assert "payload: 1 that are here already (1,000 bytes)" in text


def test_a_long_plan_begins_with_its_summary(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool", 30)
    up.commit()
    down = place.downstream(up)
    lines = down.run("plan", down.name).out.splitlines()
    assert lines[0].startswith(f"{down.name}: 30 files to fetch")
    assert len([line for line in lines if line.startswith("fetch ")]) < 20
    assert lines[-1].startswith("and ")
    assert "--list" in lines[-1]
    listed = down.run("plan", down.name, "--list").out.splitlines()
    assert listed[: len(lines) - 1] == lines[:-1]
    assert len([line for line in listed if line.startswith("fetch ")]) == 30
    assert len(down.run("plan", down.name, "--json").events("operation")) > 30


@pytest.mark.parametrize("name", ["9", "previous..x", "abc", "..1.."])
def test_a_commit_that_is_not_here(pair: tuple[Upstream, Downstream], name: str) -> None:
    _, down = pair
    ended = down.run("diff", down.name, name)
    assert ended.code == 1
    assert "is here" in ended.err
    assert "serials 1, 2" in ended.err


def test_only_so_many_commits_stay(place: Site) -> None:
    up = place.upstream()
    down = place.downstream(up, keep_commits=2)
    for number in range(5):
        up.put(b"a", b"%d" % number, mtime=T0 + number)
        up.commit()
        down.synced()
    assert listed(down, "3..5")["a"]["change"] == "changed"
    assert down.run("diff", down.name, "2..5").code == 1
    serials = [event["serial"] for event in history_of(down, "a")]
    assert serials == [5, 4, 3]
    down.configure(keep_commits=0)
    up.put(b"a", b"last", mtime=T0 + 9)
    up.commit()
    down.synced()
    assert down.run("diff", down.name, "5..6").code == 1


def test_a_path_is_followed_to_where_it_was(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    new, old = history_of(down, "elsewhere/moved")
    assert (new["serial"], new["change"], new["source"]) == (2, "moved", "pool/moved")
    assert (old["serial"], old["path"], old["known_since"]) == (1, "pool/moved", False)
    away, _ = history_of(down, "pool/moved")
    assert (away["path"], away["source"]) == ("elsewhere/moved", "pool/moved")
    gone, there = history_of(down, str(down.dest / "pool" / "gone"))
    assert (gone["change"], there["serial"]) == ("removed", 1)
    assert [event["change"] for event in history_of(down, "pool/touched")] == ["changed", "added"]
    assert history_of(down, "nowhere") == []
    assert "pool/moved" in down.run("log", down.name, "elsewhere/moved").out


def test_why_tells_commit_stage_rule_and_tree(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    down.configure(url=NO_URL, publish=("pointers /pool/new",))
    found = why(down, "pool/new")
    assert found["applied"]["serial"] == 2
    assert found["there"]["size"] == 3
    assert (found["brought"]["serial"], found["brought"]["change"]) == (2, "added")
    assert found["stage"]["stage"] == "pointers"
    assert found["stage"]["rule_of"] == "client.toml"
    assert found["here"]["status"] == "as applied"
    assert found["next_sync"]["operations"] == []
    release = why(down, "dists/a/Release")
    assert release["stage"]["stage"] == "pointers"
    assert release["stage"]["rule_of"].startswith("the profile")
    text = down.run("why", down.name, "pool/new").out
    assert "pointers, by the rule 'pointers /pool/new' of client.toml" in text


def test_why_sees_what_others_did_to_the_tree(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    os.utime(down.dest / "pool/new", ns=(T0, T0 + 1))
    assert why(down, "pool/new")["here"] == {
        "status": "differs",
        "attributes": ["mtime"],
        "entry": {**why(down, "pool/new")["there"], "mtime_ns": T0 + 1, "digest": None},
        "reason": "",
    }
    (down.dest / "pool/touched").unlink()
    assert why(down, "pool/touched")["here"]["status"] == "missing"
    (down.dest / "unknown").write_bytes(b"x")
    assert why(down, "unknown")["here"]["status"] == "extraneous"
    text = down.run("why", down.name, "pool/touched").out
    assert "verify --repair repairs it" in text
    (down.dest / "pool").rename(down.dest / "hidden")
    (down.dest / "pool").symlink_to("hidden")
    assert why(down, "pool/new")["here"]["status"] == "missing"


def test_why_tells_when_it_was_verified(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    before = why(down, "pool/new")["verified"]
    assert before is None or before["content"] is None
    start = int(time.time())
    assert down.verify().code == 0
    found = why(down, "pool/new")["verified"]
    assert found["part"] == "."
    assert start <= found["metadata"] <= time.time()
    assert found["content"] is None
    assert "content never" in down.run("why", down.name, "pool/new").out
    assert down.verify("--content").code == 0
    assert start <= why(down, "pool/new")["verified"]["content"] <= time.time()


def test_why_tells_of_deletions_that_wait(place: Site) -> None:
    up = place.upstream()
    up.put(b"stays", b"s")
    up.put(b"goes", b"g")
    down = place.synced_downstream(up, delete_after="1h")
    up.at(b"goes").unlink()
    up.commit()
    down.plan()
    (operation,) = why(down, "goes")["next_sync"]["operations"]
    assert operation["operation"] == "delayed"
    down.synced()
    found = why(down, "goes")
    assert found["delayed"]["until"] - found["delayed"]["since"] == 3600
    assert found["there"] is None
    assert found["here"]["status"] == "extraneous"
    assert "to be deleted since" in down.run("why", down.name, "goes").out


def test_the_upstream_goes_back_to_a_commit_that_is_here(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"one")
    up.commit()
    down = place.downstream(up)
    first = down.synced()["commit"]
    up.put(b"a", b"three")
    up.commit()
    down.synced()
    up.put(b"a", b"one")
    command = ["git", "--git-dir", up.places.repository, "update-ref", "refs/heads/main", first]
    subprocess.run(command, check=True, timeout=30)
    assert down.sync().code == 46
    # What was refused is not the newest.
    assert listed(down, "applied..newest") == {}
    assert down.synced("--accept-rollback")["serial"] == 1
    runs = down.run("log", down.name, "--json").events("run")
    assert [(run["from_serial"], run["to_serial"], run["outcome"]) for run in runs[:2]] == [
        (2, 1, "OK"),
        (2, 2, "ROLLED_BACK"),
    ]
    assert listed(down, "2..1")["a"]["change"] == "changed"
    assert down.verify("--content").code == 0


def test_why_tells_which_filter_rule_decides(place: Site) -> None:
    up = place.upstream()
    up.put(b"iso/big.iso", b"big")
    up.put(b"iso/big.txt", b"text")
    down = place.synced_downstream(up, filter=("- *.iso",), protect=("/iso/own",))
    found = why(down, "iso/big.iso")
    assert found["there"]["size"] == 3
    assert not found["filter"]["let_through"]
    assert found["filter"]["rule"].endswith(" *.iso")
    assert found["here"]["status"] == "nothing"
    assert why(down, "iso/big.txt")["filter"] == {
        "let_through": True,
        "protected": False,
        "rule": None,
        "place": None,
        "matched": None,
    }
    text = down.run("why", down.name, "iso/big.iso").out
    assert "leaves it out" in text
    assert "*.iso" in text
    assert why(down, "iso/own")["protected"]
    assert "never touched" in down.run("why", down.name, "iso/own").out
    # A filter that has changed since is told of as what is to come.
    down.configure(filter=())
    (operation,) = why(down, "iso/big.iso")["next_sync"]["operations"]
    assert operation["operation"] == "fetch"


def test_why_tells_what_a_sync_would_refuse(place: Site) -> None:
    up = place.upstream()
    up.many(b"d", 3)
    down = place.synced_downstream(up, max_delete="0")
    up.at(b"d/1").unlink()
    up.commit()
    assert down.run("plan", down.name).code == 25
    refusal = why(down, "d/1")["next_sync"]["refusal"]
    assert "1 of" in refusal


def test_a_tree_that_is_held_after_an_undo(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"one")
    down = place.synced_downstream(up, trash="1d")
    up.put(b"a", b"three")
    up.commit()
    down.synced()
    assert down.run("undo", down.name).code == 0
    assert "undo" in down.run("log", down.name).out
    assert "held" in why(down, "a")["next_sync"]["refusal"]
    checks = down.run("doctor", down.name, "--json").events("check")
    (state,) = [check for check in checks if check["check"] == "state"]
    assert state["result"] == "warn"
    assert "--unhold" in state["fix"]


def test_a_slash_in_front_counts_from_the_top_of_the_module(
    pair: tuple[Upstream, Downstream],
) -> None:
    _, down = pair
    assert "etc/passwd: in no commit" in down.run("log", down.name, "/etc/passwd").err
    ended = down.run("why", down.name, "/etc/passwd")
    assert ended.code == 1
    assert "etc/passwd: neither here" in ended.err


@pytest.mark.parametrize("path", ["../x", "a/../b"])
def test_a_path_that_is_none(pair: tuple[Upstream, Downstream], path: str) -> None:
    _, down = pair
    for command in ("log", "why"):
        ended = down.run(command, down.name, path)
        assert ended.code == 1
        assert "relative to the top of the module" in ended.err


def test_a_module_that_was_never_synced(place: Site) -> None:
    up = place.upstream()
    down = place.downstream(up)
    assert down.run("log", down.name).code == 0
    assert down.run("log", down.name, "a").code == 47
    assert down.run("diff", down.name).code == 47
    assert down.run("why", down.name, "a").code == 47
    assert not module_places(down.root, down.name).repository.exists()
    assert down.run("log", "unknown").code == 45


def test_they_answer_while_a_sync_runs(pair: tuple[Upstream, Downstream]) -> None:
    from huai_client.state.lock import module_lock

    _, down = pair
    with module_lock(module_places(down.root, down.name), wait=0):
        assert down.sync().code == 43
        assert down.run("log", down.name).code == 0
        assert listed(down, "1..2")
        assert why(down, "pool/new")


def test_why_of_a_path_that_is_nowhere_ends_with_1(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    done = down.run("why", down.name, "pool/nosuch")
    assert done.code == 1, done
    assert "pool/nosuch: neither here nor in any commit that is here" in done.err
    assert "as it should be" not in done.out
    events = down.run("why", down.name, "pool/nosuch", "--json").events()
    assert [each["type"] for each in events] == ["why", "error"]
