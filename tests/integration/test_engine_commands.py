"""`digest`, `scrub` and `audit` by the processes of an engine: the results of a single process."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from huai_schema.errors import ExitCode
from tests.support.committing import (
    NAME,
    SECONDS,
    Upstream,
    run_server,
    server_command,
    server_environment,
)
from tests.support.dask_cluster import started_cluster, starting
from tests.support.sharded import configure, cut_upstream, whole_id
from tests.support.verifying import spoil_file

LARGE = 6
"""The files that are a list each."""
LARGE_BYTES = 80 << 20


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    """A commit without digests."""
    upstream = cut_upstream(short_path)
    configure(upstream, digest="later")
    for number in range(LARGE):
        with upstream.write(f"large/{number}", str(number)).open("r+b") as file:
            file.truncate(LARGE_BYTES)
    upstream.commit()
    yield upstream
    upstream.prove_sound()
    assert not list((upstream.places.folder / "shards").glob("*_files"))


@pytest.fixture(params=["local://4", "dask"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param != "dask":
        yield request.param
        return
    with starting() as start:
        yield f"dask://{started_cluster(tmp_path, start, 4)[0]}"


def run(upstream: Upstream, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    """Run a command; return its events without what differs between runs."""
    command, *options = arguments
    done = run_server(upstream.root, command, NAME, "--json", *options)
    assert done.returncode == code, done.stderr
    events = map(json.loads, done.stdout.splitlines())
    passing = {"seconds", "round", "finished", "since"}
    return [{key: value for key, value in each.items() if key not in passing} for each in events]


def readers(path: Path) -> set[int]:
    """Return the processes that have a file open."""
    processes = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            handles = list((process / "fd").iterdir())
            if any(handle.readlink() == path for handle in handles):
                processes.add(int(process.name))
        except OSError:
            continue
    return processes


def kill_readers(running: "subprocess.Popen[bytes]", path: Path, times: int) -> int:
    """Kill the processes that read a file, so many times while a command runs; return how many."""
    killed, end = 0, time.monotonic() + SECONDS
    while killed < times and running.poll() is None and time.monotonic() < end:
        for process in readers(path) - {running.pid}:
            os.kill(process, signal.SIGKILL)
            killed += 1
        time.sleep(0.005)
    running.wait(SECONDS)
    return killed


def test_digests_are_those_of_one_process(upstream: Upstream, tmp_path: Path, engine: str) -> None:
    (done,) = run(upstream, "digest", "--engine", engine)
    assert (done["missing"], done["changed"], done["problems"]) == (0, True, [])
    alone = Upstream(tmp_path / "alone", upstream.tree)
    configure(alone, digest="later")
    alone.commit()
    (expected,) = run(alone, "digest")
    assert done["hashed_bytes"] == expected["hashed_bytes"]
    assert upstream.entries_id == alone.entries_id == whole_id(upstream, tmp_path / "now")[0]
    # The next scan reads nothing again, here or in shards.
    configure(upstream)
    assert upstream.commit().hashed_files == 0


def test_a_scrub_finds_the_same_damage(upstream: Upstream, engine: str) -> None:
    run(upstream, "digest")
    for path in ("pool/a/5", "pool/b/c/9", "top"):
        spoil_file(upstream.tree / path)
    upstream.write("small/3", "changed")
    expected = run(upstream, "scrub", "--full", code=ExitCode.DAMAGED)
    assert expected[-1]["changed"] == 1
    events = run(upstream, "scrub", "--full", "--engine", engine, code=ExitCode.DAMAGED)
    assert events == expected
    assert [each["path"] for each in events[:-1]] == ["top", "pool/a/5", "pool/b/c/9"]


def test_an_audit_finds_the_same_differences(upstream: Upstream, engine: str) -> None:
    assert run(upstream, "audit", "--engine", engine) == run(upstream, "audit")
    packs = set(upstream.repository.pack_folder.iterdir())
    head = upstream.head
    upstream.write("pool/a/5", "other")
    upstream.write("pool/b/c/new", "new")
    (upstream.tree / "pool/a/linked").unlink()
    expected = run(upstream, "audit", code=ExitCode.DIFFERS)
    assert run(upstream, "audit", "--engine", engine, code=ExitCode.DIFFERS) == expected
    assert set(upstream.repository.pack_folder.iterdir()) == packs
    assert upstream.head == head
    assert not list((upstream.places.folder / "shards").glob("results/*"))


def test_a_killed_process_is_replaced(upstream: Upstream, tmp_path: Path, engine: str) -> None:
    large = upstream.tree / "large/0"
    os.truncate(large, 3 << 30)
    upstream.commit()
    command = server_command(upstream.root, "digest", NAME, "--engine", engine)
    with subprocess.Popen(command, env=server_environment()) as running:
        assert kill_readers(running, large, 1) == 1
    assert running.returncode == 0
    assert upstream.entries_id == whole_id(upstream, tmp_path)[0]


def test_files_that_kill_their_processes_are_named(upstream: Upstream, tmp_path: Path) -> None:
    large = upstream.tree / "large/0"
    os.truncate(large, 3 << 30)
    upstream.commit()
    command = server_command(upstream.root, "digest", NAME, "--json", "--engine", "local://2")
    with subprocess.Popen(command, env=server_environment(), stdout=subprocess.PIPE) as running:
        assert kill_readers(running, large, 2) == 2
        assert running.stdout is not None
        done = json.loads(running.stdout.readline())
    assert running.returncode == ExitCode.INCOMPLETE
    assert [each[0] for each in done["problems"]] == ["large/0"]
    assert done["missing"] == 1
    run(upstream, "digest")
    assert upstream.entries_id == whole_id(upstream, tmp_path)[0]
