"""`verify --engine`: the processes of an engine find and record what this process would."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from huai_client.state.paths import module_places
from huai_client.verify import part_tasks
from huai_client.verify.jobs import PartJob, StartedJob
from huai_client.verify.part_tasks import PartsTask
from huai_client.verify.queue import VerifyRequest
from huai_program.engine.signs import BEGAN
from huai_program.priority import idle_disk, io_priority
from huai_schema.errors import ExitCode
from huai_schema.paths import RelPath
from tests.support.dask_cluster import started_cluster, starting
from tests.support.mounting import may_mount
from tests.support.processes import descendants, open_paths, until
from tests.support.upstream import (
    ENVIRONMENT,
    SECONDS,
    Downstream,
    Ended,
    Pair,
    Site,
    assert_equal,
    ended,
)
from tests.support.verifying import (
    Steps,
    cut,
    differing_paths,
    parts,
    patrol,
    spoil,
    standing,
    totals,
)

FILES = 150
ODD = b'odd \xff\n"\\ \xe2\x82\xac'
LOCAL = "local://2"


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    up = place.upstream()
    for folder in (b"a", b"b", b"c/d", ODD):
        up.many(folder, FILES)
    up.many(b"small", 5)
    up.many(b"mounted", 2)
    up.put(b"b/" + ODD, b"odd")
    up.at(b"b/symlink").symlink_to(os.fsdecode(ODD))
    os.link(up.at(b"a/7"), up.at(b"c/d/linked"))
    up.put(b"file", b"content")
    return up, place.synced_downstream(up)


@pytest.fixture(params=[LOCAL, "dask://", "mpi://"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of an engine with two processes."""
    if request.param != "dask://":
        yield request.param
        return
    with starting() as start:
        yield f"dask://{started_cluster(tmp_path, start, 2)[0]}"


def verify(down: Downstream, url: str, *options: str) -> Ended:
    """Verify by a program, with the engine at `url`, if any."""
    words = ["verify", down.name, "--json", *options]
    if not url.startswith("mpi"):
        return down.process(*words, *(["--engine", url] if url else []))
    mpi = [str(Path(sys.executable).with_name("mpiexec")), "-n", "3", sys.executable, "-m"]
    command = [*mpi, "huai_client.mpi", "--root", str(down.root), *words, "--engine", url]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return ended(subprocess.Popen(command, env=ENVIRONMENT, **streams))


class Outcome(NamedTuple):
    code: int
    differences: list[str]
    totals: dict[str, Any]
    record: list[tuple[Any, ...]]


def outcome(down: Downstream, url: str, *options: str) -> Outcome:
    """Verify with a new record; return all that a run leaves, without its time."""
    places = module_places(down.root, down.name)
    places.verified.unlink(missing_ok=True)
    done = verify(down, url, *options)
    assert not places.tasks.exists()
    with closing(sqlite3.connect(places.verified)) as db:
        record = [
            *db.execute(
                "SELECT key, identity, metadata > 0, content > 0, damaged, run FROM parts"
                " ORDER BY key"
            )
        ]
        assert not [*db.execute("SELECT * FROM unfinished")]
    differences = sorted(json.dumps(event) for event in done.events("difference"))
    return Outcome(done.code, differences, totals(done), record)


def damage(down: Downstream) -> None:
    """Damage the tree in each way."""
    odd = down.dest / os.fsdecode(ODD)
    (down.dest / "a/1").unlink()
    (odd / "9").unlink()
    (down.dest / "a/extraneous").touch()
    (odd / os.fsdecode(ODD)).touch()
    (down.dest / "small/extraneous").mkdir()
    (down.dest / "small/extraneous/file").touch()
    for path in ("a/2", "file", f"{odd.name}/3", f"b/{odd.name}"):
        spoil(down, path)
    cut(down, "b/4")
    (down.dest / "b/5").chmod(0o600)
    os.utime(down.dest / "b/6", ns=(1, 1))
    (down.dest / "b/8").unlink()
    (down.dest / "b/8").symlink_to("9")
    (down.dest / "b/symlink").unlink()
    (down.dest / "b/symlink").symlink_to("elsewhere")
    linked = down.dest / "c/d/linked"
    content, status = linked.read_bytes(), linked.stat()
    linked.unlink()
    linked.write_bytes(content)
    os.utime(linked, ns=(status.st_atime_ns, status.st_mtime_ns))
    (down.dest / "c/d").chmod(0o700)


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """Make a directory unreadable for `verify`, by a mount, if that is allowed here."""
    if not may_mount():
        yield
        return
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True, timeout=SECONDS)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True, timeout=SECONDS)


def test_the_result_is_that_of_one_process(pair: Pair, engine: str) -> None:
    _, down = pair
    right = outcome(down, "", "--content")
    assert outcome(down, engine, "--content") == right
    assert (right.code, right.differences) == (0, [])
    assert {row[2:] for row in right.record} == {(1, 1, 0, 1)}
    damage(down)
    with mounted(down.dest / "mounted"):
        assert outcome(down, engine) == outcome(down, "")
        damaged = outcome(down, "", "--content")
        assert outcome(down, engine, "--content") == damaged
    assert damaged.code == ExitCode.DIFFERS
    kinds = {json.loads(each)["difference"] for each in damaged.differences}
    assert kinds == {"missing", "extraneous", "differs", *["unreadable"] * may_mount()}
    names = {name for each in damaged.differences for name in json.loads(each)["attributes"]}
    assert names >= {"digest", "link", "mode", "mtime", "size", "target", "type"}


def test_a_repair(pair: Pair) -> None:
    up, down = pair
    damage(down)
    options = ("--content", "--repair", "--delete-extraneous")
    assert verify(down, LOCAL, *options).code == 0
    assert standing(down)["damaged"] == 0
    assert_equal(up, down)


def test_a_path(pair: Pair, subtests: pytest.Subtests) -> None:
    _, down = pair
    damage(down)
    for path in ("a", "c", "small/extraneous", os.fsdecode(ODD)):
        with subtests.test(path=ascii(path)):
            one = outcome(down, "", "--content", "--path", path)
            assert one.differences
            assert outcome(down, LOCAL, "--content", "--path", path) == one


def test_seen_digests(place: Site) -> None:
    up = place.upstream(digest="off")
    for folder in (b"a", b"b"):
        up.many(folder, FILES)
    down = place.synced_downstream(up)
    spoil(down, "b/7")
    one = outcome(down, "", "--content")
    assert (len(one.differences), one.totals["seen"]) == (1, 2 * FILES)
    assert outcome(down, LOCAL, "--content") == one


def test_little_time(pair: Pair) -> None:
    _, down = pair
    none = verify(down, LOCAL, "--time", "0")
    assert (none.code, totals(none)["entries"], totals(none)["left"]) == (0, 0, 6)
    run, _ = patrol(down, VerifyRequest(deadline=Steps.counted(1)))
    run.run(wait=0)
    assert run.left == 5  # with one that is not finished
    words = ("verify", down.name, "--json", "--engine", LOCAL, "--time", "1h")
    rest = down.process(*words, environment={"LANG": "C"})  # a program that ends at once
    assert "Warning" not in rest.err
    assert totals(rest)["left"] == 0
    every = totals(down.verify("--json"))["entries"]
    assert totals(rest)["entries"] == every - FILES - 1  # all was compared, but not recorded
    assert standing(down)["metadata"]["never"] == 0


def test_what_does_not_go_with_an_engine(pair: Pair, subtests: pytest.Subtests) -> None:
    _, down = pair
    refused = {
        (down.name, "--engine", LOCAL, "--sample", "1%"): ExitCode.USAGE,
        ("--all", "--engine", "mpi://"): ExitCode.USAGE,
        (down.name, "--engine", "spark://a"): ExitCode.USAGE,
        (down.name, "--engine", "mpi://"): ExitCode.NETWORK,
    }
    for words, code in refused.items():
        with subtests.test(words=words):
            assert down.run("verify", *words).code == code


def test_a_process_gives_way_and_does_nothing_twice_or_too_late(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, down = pair
    priorities: list[int | None] = []
    real = PartJob.start

    def start(*arguments: Any, **options: Any) -> StartedJob:
        priorities.append(io_priority())
        return real(*arguments, **options)

    monkeypatch.setattr(PartJob, "start", start)
    done = PartsTask(
        root=str(down.root),
        name=down.name,
        folder=str(tmp_path),
        key="a",
        content=False,
        until=None,
        parts=[(RelPath(b"a"), b"")],
    )
    late = msgspec.structs.replace(done, key="b", until=time.time() - 1)
    for task in (done, done, late):
        part_tasks.compare_parts(msgspec.json.encode(task).decode())
    with idle_disk():
        assert priorities == [io_priority()]
    assert {each.name for each in tmp_path.glob("*.shard")} == {"a.shard", "b.shard"}


def test_a_sync_before_a_result_is_there(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    up, down = pair
    cut(down, "a/8")
    cut(down, "a/9")

    class Late(Executor):
        """Answers after a sync."""

        def submit(self, function: Any, /, *args: Any, **_: Any) -> "Future[Any]":
            future: Future[Any] = Future()
            result = function(*args)
            if up.head == head:
                up.put(b"a/8", b"other")
                up.commit()
                down.synced()
            future.set_result(result)
            return future

    head = up.head
    monkeypatch.setattr(part_tasks, "open_engine", lambda _: Late)
    monkeypatch.setattr(part_tasks, "_TASKS", 1)
    run, differences = patrol(down, VerifyRequest(engine=LOCAL))
    run.run(wait=0)
    assert [each.path for each in differences] == [b"a/9"]
    assert parts(down)["a"]["metadata"]["changed"] == parts(down)["a"]["damaged"] == 1


class Killed(Executor):
    """Runs tasks here; the processes of one part are killed."""

    def submit(self, function: Any, /, *args: Any, **_: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        task = msgspec.json.decode(args[1], type=PartsTask)
        if b"b" in dict(task.parts):
            (Path(task.folder) / (task.key + BEGAN)).touch()
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(function(*args))
        return future


def test_a_part_that_ends_its_processes_spares_others(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, down = pair
    cut(down, "a/8")
    monkeypatch.setattr(part_tasks, "open_engine", lambda _: Killed)
    monkeypatch.setattr(part_tasks, "_TASKS", 1)  # all parts are one task
    run, differences = patrol(down, VerifyRequest(engine=LOCAL))
    run.run(wait=0)
    assert ([each.path for each in differences], run.failed) == ([b"a/8"], 1)
    assert standing(down)["metadata"]["never"] == parts(down)["b"]["metadata"]["never"] == 1


# ------------------------------------------------------------ in the middle of a part


KILLS = 2
"""The processes that a task has in all."""


@pytest.fixture
def slow(place: Site) -> Pair:
    """A pair with a part that takes long: it has a large file."""
    up = place.upstream()
    for folder in (b"a", b"slow"):
        up.many(folder, FILES)
    down = place.downstream(up)
    for tree in (up.tree, down.dest):
        (tree / "slow").mkdir(exist_ok=True)
        with (tree / "slow/large").open("wb") as file:
            file.truncate(2 << 30)
        os.utime(tree / "slow/large", ns=(1, 1))
    up.commit()
    down.synced("--adopt")
    return up, down


def reader(down: Downstream, process: subprocess.Popen[str], *former: int) -> int:
    """Wait for a process below another that reads the large file, and return it."""
    large = str(down.dest / "slow/large")
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        for process_id in descendants(process.pid) - {process.pid, *former}:
            with suppress(OSError):  # it has ended
                if large in open_paths(process_id):
                    return process_id
    raise AssertionError("no process reads it")


def started(down: Downstream) -> "subprocess.Popen[str]":
    return down.spawn("verify", down.name, "--content", "--json", "--engine", LOCAL)


def test_a_killed_process_is_replaced(slow: Pair) -> None:
    _, down = slow
    spoil(down, "slow/7")
    process = started(down)
    os.kill(reader(down, process), signal.SIGKILL)
    assert differing_paths(ended(process)) == ["slow/7"]
    assert standing(down)["content"]["never"] == 0


def test_a_part_whose_processes_are_killed_is_left(slow: Pair) -> None:
    _, down = slow
    process = started(down)
    killed: list[int] = []
    for _ in range(KILLS):
        killed.append(reader(down, process, *killed))
        os.kill(killed[-1], signal.SIGKILL)
    done = ended(process)
    assert (done.code, done.events("difference")) == (ExitCode.DIFFERS, [])
    assert totals(done)["left"] == parts(down)["slow"]["content"]["never"] == 1
    assert "not compared, because the processes" in done.err
    assert "part was not compared" in down.run("log", down.name).out
    assert down.verify("--content").code == 0


def test_a_sync_at_the_same_time(slow: Pair) -> None:
    up, down = slow
    process = started(down)
    reader(down, process)
    up.put(b"a/99", b"other")
    up.at(b"slow/0").unlink()
    up.commit()
    down.synced()
    cut(down, "slow/1")  # the part is compared again
    done = ended(process)
    assert differing_paths(done) == ["slow/1"]
    assert standing(down)["damaged"] == 1


def test_the_end_of_a_run_ends_its_processes(slow: Pair) -> None:
    _, down = slow
    process = started(down)
    worker = reader(down, process)
    process.kill()
    process.communicate()
    until(lambda: not Path(f"/proc/{worker}/fd").exists() or not open_paths(worker))
    assert verify(down, LOCAL, "--content").code == 0
