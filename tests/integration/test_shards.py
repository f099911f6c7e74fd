"""Commits whose tree is scanned in shards, by processes or by commands: the ids of one scan."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from huai_schema.errors import ExitCode
from huai_server.commit.shard_record import shard_key
from tests.support.committing import NAME, SECONDS, Upstream, run_server, server_environment
from tests.support.dask_cluster import started_cluster, starting
from tests.support.sharded import (
    committed,
    configure,
    cut_upstream,
    ended,
    make_slow,
    mpi_command,
    started,
    whole_id,
)

Commit = Callable[[Upstream], dict[str, Any]]


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    upstream = cut_upstream(short_path)
    yield upstream
    upstream.prove_sound()
    assert not list((upstream.places.folder / "shards").glob("results/*"))


def by_processes(upstream: Upstream) -> dict[str, Any]:
    return committed(upstream, "--engine", "local://2")


def planned(upstream: Upstream) -> list[dict[str, Any]]:
    done = run_server(upstream.root, "shards", NAME, "--json")
    assert done.returncode == 0, done.stderr
    return list(map(json.loads, done.stdout.splitlines()))


def scan_all(upstream: Upstream) -> Path:
    folder = upstream.root / "jobs"
    for shard in planned(upstream):
        arguments = [shard["path"], "--base", shard["base"], "--to", str(folder)]
        done = run_server(upstream.root, "shard", NAME, *arguments)
        assert done.returncode == 0, done.stderr
    return folder


def by_commands(upstream: Upstream) -> dict[str, Any]:
    folder = scan_all(upstream)
    done = committed(upstream, "--from-shards", str(folder))
    assert not list(folder.iterdir())
    return done


def by_dask(upstream: Upstream) -> dict[str, Any]:
    with starting() as start:
        address, _ = started_cluster(Path(tempfile.mkdtemp(dir=upstream.root)), start, 4)
        return committed(upstream, "--engine", f"dask://{address}")


def by_mpi(upstream: Upstream) -> dict[str, Any]:
    arguments = ["commit", NAME, "--json", "--engine", "mpi://"]
    done = subprocess.run(
        mpi_command(3, upstream.root, *arguments),
        env=server_environment(),
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("commit", [committed, by_processes, by_dask, by_mpi, by_commands])
def test_all_ways_lead_to_one_tree(upstream: Upstream, tmp_path: Path, commit: Commit) -> None:
    first = commit(upstream)
    assert (upstream.entries_id, upstream.links()) == whole_id(upstream, tmp_path / "1")
    assert upstream.links()["pool/b/c/7"] == "pool/a/linked"
    totals = upstream.head.info.totals
    assert (totals.files, totals.directories) == (325, 6)
    assert first["hashed_files"] >= 321

    assert [each["path"] for each in planned(upstream)] == ["pool/a", "pool/b", "small"]
    again = commit(upstream)
    assert (again["changed"], again["hashed_files"]) == (False, 0)

    upstream.write("pool/b/c/7", "new")
    (upstream.tree / "pool/a/linked").unlink()
    upstream.write("small/new", "new")
    shutil.rmtree(upstream.tree / "pool/b/c/.", ignore_errors=True)
    changed = commit(upstream)
    assert changed["changed"]
    assert (upstream.entries_id, upstream.links()) == whole_id(upstream, tmp_path / "2")


def test_no_shard_of_a_first_commit_is_what_a_scan_leaves_out(upstream: Upstream) -> None:
    upstream.write(".~tmp~/part", "part")
    upstream.write("skip/a", "a")
    configuration = upstream.root / "server.toml"
    text = configuration.read_text().replace(
        f"[modules.{NAME}.engine]", f'exclude = ["/skip/"]\n[modules.{NAME}.engine]'
    )
    configuration.write_text(text)
    assert [each["path"] for each in planned(upstream)] == ["pool/a", "pool/b/c", "small"]
    by_processes(upstream)
    assert {"skip", ".~tmp~"}.isdisjoint(upstream.paths())


def test_a_missing_root_of_a_first_commit_is_named(upstream: Upstream) -> None:
    upstream.tree.rename(upstream.tree.with_name("away"))
    for command in (("commit", NAME, "--engine", "local://2"), ("shards", NAME)):
        done = run_server(upstream.root, *command)
        assert done.returncode == ExitCode.EMPTY_ROOT, done.stderr
        assert str(upstream.tree) in done.stderr
    upstream.tree.with_name("away").rename(upstream.tree)
    by_processes(upstream)


def test_no_way_reads_what_another_one_has_read(upstream: Upstream) -> None:
    committed(upstream)
    for way in (by_processes, committed, by_commands, committed, by_processes):
        assert way(upstream)["hashed_files"] == 0, way
    upstream.write("pool/a/5", "other")
    assert by_processes(upstream)["hashed_files"] == 1


def test_a_list_finds_the_hardlinks_of_shards(upstream: Upstream, tmp_path: Path) -> None:
    by_processes(upstream)
    upstream.write("pool/b/c/7", "new")
    upstream.commit_listed("pool/b/c/7")
    assert (upstream.entries_id, upstream.links()) == whole_id(upstream, tmp_path)


def edit(record: Path, **values: object) -> None:
    record.write_text(json.dumps({**json.loads(record.read_text()), **values}))


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"base": "0" * 40}, ExitCode.CONFIG),
        ({"settings": "[]"}, ExitCode.CONFIG),
        ({"version": "0.0.1"}, ExitCode.REQUIREMENT),
        ({"tree": 5}, ExitCode.CONFIG),
    ],
)
def test_results_of_something_else_are_refused(
    upstream: Upstream, values: dict[str, object], code: int
) -> None:
    committed(upstream)
    head = upstream.head
    folder = scan_all(upstream)
    record = folder / f"{shard_key(b'pool/a')}.shard"
    good = record.read_text()
    edit(record, **values)
    committed(upstream, "--from-shards", str(folder), code=code)
    assert upstream.head == head
    record.write_text(good)
    committed(upstream, "--from-shards", str(folder))


def test_a_shard_without_a_result_keeps_its_old_entries(upstream: Upstream) -> None:
    committed(upstream)
    for path in ("pool/a/new", "pool/b/c/new"):
        upstream.write(path, "new")
    folder = scan_all(upstream)
    (folder / f"{shard_key(b'pool/a')}.shard").unlink()
    done = committed(upstream, "--from-shards", str(folder), code=ExitCode.INCOMPLETE)
    assert [each[0] for each in done["problems"]] == ["pool/a"]
    assert "pool/b/c/new" in upstream.paths()
    assert "pool/a/new" not in upstream.paths()
    assert "pool/a/7" in upstream.paths()
    # The job has read the new file, and kept its digest.
    assert by_processes(upstream)["hashed_files"] == 0
    assert "pool/a/new" in upstream.paths()


def test_a_worker_that_saw_another_directory_is_not_believed(upstream: Upstream) -> None:
    committed(upstream)
    folder = scan_all(upstream)
    edit(folder / f"{shard_key(b'pool/a')}.shard", view=[0, 1])
    done = committed(upstream, "--from-shards", str(folder), code=ExitCode.INCOMPLETE)
    assert [each[0] for each in done["problems"]] == ["pool/a"]


def test_a_directory_that_is_gone_or_empty_is_committed_so(
    upstream: Upstream, tmp_path: Path
) -> None:
    committed(upstream)
    folder = scan_all(upstream)
    shutil.rmtree(upstream.tree / "pool/a")
    committed(upstream, "--from-shards", str(folder))
    assert upstream.entries_id == whole_id(upstream, tmp_path / "1")[0]
    shutil.rmtree(upstream.tree / "pool/b/c")
    by_processes(upstream)
    assert upstream.entries_id == whole_id(upstream, tmp_path / "2")[0]


def test_a_cut_pack_is_not_installed(upstream: Upstream) -> None:
    committed(upstream)
    upstream.write("pool/a/new", "new")
    folder = scan_all(upstream)
    pack = next(folder.glob("*.pack"))
    content = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(content[:-30] + b"x" * 30)
    committed(upstream, "--from-shards", str(folder), code=ExitCode.CONFIG)
    pack.write_bytes(content)
    committed(upstream, "--from-shards", str(folder))


def test_a_killed_worker_is_replaced(upstream: Upstream, tmp_path: Path) -> None:
    committed(upstream)
    make_slow(upstream)
    running, worker = started(upstream, b"pool/a")
    os.kill(worker, signal.SIGKILL)
    assert ended(running) == 0
    assert upstream.entries_id == whole_id(upstream, tmp_path)[0]


def test_a_stopped_worker_is_replaced(upstream: Upstream, tmp_path: Path) -> None:
    configure(upstream, deadline="4s")
    committed(upstream)
    make_slow(upstream)
    running, worker = started(upstream, b"pool/a")
    os.kill(worker, signal.SIGSTOP)
    assert ended(running) == 0
    assert upstream.entries_id == whole_id(upstream, tmp_path)[0]
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_a_killed_coordinator_leaves_results_for_the_next(
    upstream: Upstream, tmp_path: Path
) -> None:
    committed(upstream)
    head = upstream.head
    upstream.write("pool/b/c/new", "new")
    large = make_slow(upstream, 60 << 30)  # its scan takes longer than all else
    running, worker = started(upstream, b"pool/a")
    done = upstream.places.folder / "shards/results" / f"{shard_key(b'pool/b')}.shard"
    end = time.monotonic() + SECONDS
    while not done.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert run_server(upstream.root, "commit", NAME).returncode == ExitCode.LOCKED
    running.kill()
    running.communicate(timeout=SECONDS)
    assert upstream.head == head
    result = done.stat().st_ino
    while time.monotonic() < end and Path(f"/proc/{worker}").exists():
        time.sleep(0.01)  # a worker ends with its coordinator
    assert not Path(f"/proc/{worker}").exists()
    assert done.stat().st_ino == result
    os.truncate(large, 1)
    assert by_processes(upstream)["hashed_files"] == 2
    assert upstream.entries_id == whole_id(upstream, tmp_path)[0]
