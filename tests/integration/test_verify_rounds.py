"""`verify --time`: the longest ago first, gone on with, and never in the way of a sync."""

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from huai_client.diff import compare
from huai_client.diff.compare import Compared
from huai_client.run.options import Deadline
from huai_client.state.paths import module_places
from huai_client.verify.jobs import PartJob, StartedJob
from huai_client.verify.queue import VerifyRequest
from huai_program.locking import holder, locked
from tests.support.processes import until
from tests.support.upstream import Downstream, Pair, Site, ended
from tests.support.verifying import (
    Steps,
    bit_by_bit,
    cut,
    differing_paths,
    parts,
    patrol,
    spoil,
    standing,
    totals,
)

FILES = 150


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    for folder in (b"a", b"b", b"c"):
        up.many(folder, FILES)
    up.put(b"file", b"content")
    return up, place.synced_downstream(up)


@pytest.fixture(autouse=True)
def compare_one_entry_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run can be stopped behind each, and something be done there."""
    monkeypatch.setattr(compare, "STEP", 1)


def during(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], object]) -> None:
    """Do something when so many entries have been compared."""
    real = PartJob.start
    left = [number]

    def counted(steps: Iterator[Compared]) -> Iterator[Compared]:
        for step in steps:
            left[0] -= step.entries
            if not left[0]:
                act()
            yield step

    def start(job: PartJob, *arguments: Any, **options: Any) -> StartedJob:
        started = real(job, *arguments, **options)
        return started._replace(steps=counted(started.steps))

    monkeypatch.setattr(PartJob, "start", start)


# ------------------------------------------------------------ the record


def test_status_tells_what_was_never_verified(pair: Pair) -> None:
    _, down = pair
    assert down.run("status", "--json").events("module")[0]["verified"] is None
    assert "never verified" in down.run("status").out
    before = int(time.time())
    assert down.verify().code == 0
    progress = standing(down)
    assert (progress["parts"], progress["metadata"]["never"], progress["content"]["never"]) == (
        4,
        0,
        4,
    )
    assert before <= progress["metadata"]["oldest"] <= progress["metadata"]["newest"] <= time.time()
    assert progress["content"]["oldest"] is None
    assert progress["current"] is True
    text = down.run("status", "--parts").out
    assert ", never read" in text
    assert [line.split(":")[0].strip() for line in text.splitlines()[1:]] == [".", "a", "b", "c"]
    assert down.verify("--content").code == 0
    assert standing(down)["content"]["never"] == 0


def test_status_says_so_if_all_changed_since_it_was_verified(place: Site) -> None:
    up = place.upstream()
    up.put(b"file", b"content")
    down = place.synced_downstream(up)
    assert down.verify("--content").code == 0
    up.put(b"file", b"other content")
    up.commit()
    down.synced()
    text = down.run("status").out
    assert ", not compared since it changed, not read since it changed" in text


def test_one_path_is_recorded(pair: Pair) -> None:
    _, down = pair
    assert down.verify("--path", "b").code == 0
    never = {path: part["metadata"]["never"] for path, part in parts(down).items()}
    assert never == {".": 1, "a": 1, "b": 0, "c": 1}


def test_damage_is_remembered_until_it_is_repaired(pair: Pair) -> None:
    _, down = pair
    spoil(down, "b/7")
    spoil(down, "b/8")
    assert down.verify("--content").code == 47
    assert {path: part["damaged"] for path, part in parts(down).items()} == {
        ".": 0,
        "a": 0,
        "b": 2,
        "c": 0,
    }
    assert "2 paths differed" in down.run("status").out
    # It comes first, because it is to be repaired.
    run, differences = patrol(
        down, VerifyRequest(content=True, repair=True, deadline=Steps.counted(FILES))
    )
    run.run(wait=0)
    assert sorted(each.path for each in differences) == [b"b/7", b"b/8"]
    assert down.verify("--content", "--repair").code == 0
    assert standing(down)["damaged"] == 0
    assert down.verify("--content").code == 0


def test_what_an_earlier_run_found_in_a_part_is_not_forgotten(pair: Pair) -> None:
    _, down = pair
    cut(down, "a/10")
    cut(down, "a/90")
    run, differences = patrol(down, VerifyRequest(deadline=Steps.counted(60)))
    run.run(wait=0)
    assert [each.path for each in differences] == [b"a/10"]
    # Goes on behind it, and repairs what it finds itself.
    assert down.verify("--repair", "--time", "1h").code == 0
    assert standing(down)["damaged"] == 1
    assert differing_paths(down.verify("--json")) == ["a/10"]


# ------------------------------------------------------------ little time


@pytest.mark.parametrize("content", [False, True])
def test_little_time_goes_through_all_in_the_end(pair: Pair, content: bool) -> None:
    _, down = pair
    cut(down, "a/140")
    cut(down, "c/140")
    runs = list(bit_by_bit(down, 40, content=content))
    assert [each.path for told in runs for each in told] == [b"a/140", b"c/140"]
    assert 3 * FILES / 40 <= len(runs) <= 3 * FILES / 40 + 5


def test_no_time_at_all_gets_on_by_one_entry(pair: Pair) -> None:
    _, down = pair
    ended = down.verify("--json", "--time", "0")
    assert (totals(ended)["entries"], totals(ended)["left"]) == (2, 4)
    assert standing(down)["metadata"]["never"] == 4
    assert totals(down.verify("--json", "--time", "0"))["entries"] == 1
    assert standing(down)["metadata"]["never"] == 3
    ended = down.verify("--time", "0")
    assert "the time was over before 4 parts were looked at; the next run continues" in ended.err


def test_a_sample_without_time_counts_no_parts(pair: Pair) -> None:
    _, down = pair
    ended = down.verify("--json", "--sample", "100%", "--time", "0")
    assert (totals(ended)["entries"], totals(ended)["left"]) == (1, 1)
    ended = down.verify("--sample", "100%", "--time", "0")
    assert "the time was over before all of it was looked at" in ended.err


def test_enough_time_is_as_without_limit(pair: Pair) -> None:
    _, down = pair
    ended = down.verify("--json", "--time", "1h")
    assert (ended.code, totals(ended)["left"]) == (0, 0)
    assert standing(down)["metadata"]["never"] == 0


def test_a_new_commit_between_two_runs_in_one_part(pair: Pair) -> None:
    up, down = pair
    paths = []
    for number, differences in enumerate(bit_by_bit(down, 40)):
        paths += [each.path for each in differences]
        if number == 1:  # in the middle of a
            up.put(b"a/0", b"other")
            up.commit()
            down.synced()
            cut(down, "a/99")
    assert paths == [b"a/99"]
    # What it had seen before the commit changed the part was not seen since.
    assert parts(down)["a"]["metadata"]["changed"] == 1
    assert parts(down)["b"]["metadata"]["changed"] == 0


def test_an_extraneous_file_is_told_by_the_run_that_passes_it(pair: Pair) -> None:
    _, down = pair
    (down.dest / "a" / "00").touch()
    (down.dest / "a" / "z").touch()
    paths = [each.path for seen in bit_by_bit(down, 40) for each in seen]
    # The last run has time left, and begins again with the first entries.
    assert sorted(set(paths)) == [b"a", b"a/00", b"a/z"]


# ------------------------------------------------------------ others at work


def test_a_sync_in_the_middle(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    up, down = pair
    cut(down, "c/140")

    def changes() -> None:
        up.put(b"a/99", b"other")
        up.put(b"b/99", b"other")
        up.at(b"c/0").unlink()
        up.commit()
        down.synced()
        cut(down, "a/1")  # what was seen of it does not count: it is looked at again

    during(monkeypatch, 100, changes)  # in the middle of a
    run, differences = patrol(down, VerifyRequest(content=True))
    run.run(wait=0)
    assert [(each.path, each.kind) for each in differences] == [
        (b"a/1", "differs"),
        (b"c/140", "differs"),
    ]
    progress = standing(down)
    assert progress["current"] is True
    assert (progress["content"]["never"], progress["content"]["changed"]) == (0, 0)


def test_a_sync_that_takes_a_part_away(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    up, down = pair

    def changes() -> None:
        up.at(b"a").rename(up.at(b"renamed"))
        up.commit()
        down.synced()

    during(monkeypatch, 100, changes)
    run, differences = patrol(down, VerifyRequest())
    run.run(wait=0)
    assert differences == []
    assert parts(down).keys() == {".", "b", "c", "renamed"}
    assert standing(down)["metadata"]["never"] == 0


def test_what_passes_is_not_told(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process changes a path without notice, and restores it a moment later."""
    _, down = pair
    path = down.dest / "a" / "7"
    text, status = path.read_bytes(), path.stat()
    cut(down, "a/7")

    def repair() -> None:
        path.write_bytes(text)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    during(monkeypatch, 2 + FILES, repair)
    run, differences = patrol(down, VerifyRequest())
    run.run(wait=0)
    assert differences == []
    assert standing(down)["damaged"] == 0


def test_while_another_run_keeps_the_lock(pair: Pair) -> None:
    _, down = pair
    cut(down, "a/7")
    with locked(module_places(down.root, down.name).lock):
        assert differing_paths(down.verify("--json")) == ["a/7"]
        assert down.verify("--repair").code == 43
    assert down.verify("--repair").code == 0


def rests(down: Downstream, process: subprocess.Popen[str]) -> bool:
    """Stop a program where it writes no record: a sync would wait for that to end."""
    process.send_signal(signal.SIGSTOP)
    with closing(sqlite3.connect(module_places(down.root, down.name).verified, timeout=0)) as db:
        try:
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
            return False
    return True


def test_a_sync_is_not_kept_waiting(pair: Pair) -> None:
    up, down = pair
    lock = module_places(down.root, down.name).verifying
    up.put(b"b/5", b"other")
    up.commit()
    process = down.spawn("verify", down.name, "--content", "--json")
    try:
        until(lambda: holder(lock) == process.pid)
        until(lambda: rests(down, process))
        assert down.sync().code == 0
        assert down.verify().code == 43
        assert down.verify("--wait", "1s").code == 43
        assert f"(process {process.pid})" in down.verify().err
        assert f"being verified (process {process.pid})" in down.run("status").out
        assert down.run("remove", down.name).code == 43
    finally:
        process.send_signal(signal.SIGCONT)
        done = ended(process)
    assert (done.code, totals(done)["differences"]) == (0, 0), done
    assert standing(down)["content"]["never"] == 0


def wait_for_lock(down: Downstream, process: subprocess.Popen[str]) -> None:
    """Until the process has begun to verify, or has ended."""
    lock = module_places(down.root, down.name).verifying
    until(lambda: holder(lock) == process.pid or process.poll() is not None)


def test_killed_in_the_middle(pair: Pair) -> None:
    _, down = pair
    cut(down, "c/140")
    for delay in (0.0, 0.02, 0.1):
        process = down.spawn("verify", down.name, "--content", "--time", "1h")
        wait_for_lock(down, process)
        time.sleep(delay)
        process.kill()
        process.communicate()
    assert differing_paths(down.verify("--content", "--json")) == ["c/140"]
    assert standing(down)["content"]["never"] == 0


def test_a_sync_that_could_not_write_the_record(pair: Pair, tmp_path: Path) -> None:
    up, down = pair
    assert down.verify().code == 0
    place = module_places(down.root, down.name).verified
    aside = tmp_path / "verified"
    place.rename(aside)
    place.mkdir()
    up.put(b"b/5", b"other")
    up.commit()
    down.synced()
    place.rmdir()
    aside.rename(place)
    assert standing(down)["current"] is False
    assert "was an earlier commit" in down.run("status").out
    assert down.verify().code == 0
    assert standing(down)["current"] is True


def test_a_limit_in_the_middle_of_reading(pair: Pair) -> None:
    _, down = pair
    run, differences = patrol(down, VerifyRequest(content=True, deadline=Deadline.after(0)))
    run.run(wait=0)
    assert differences == []
    assert (run.tally.entries, run.left) == (2, 4)
