"""Shards with a label: only workers of Dask that have it scan them, and read their files."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client

from huai_schema.errors import ExitCode
from tests.support.committing import NAME, SECONDS, Upstream, run_server
from tests.support.dask_cluster import Start, start_worker, started_cluster, starting
from tests.support.mounting import needs_mounts
from tests.support.sharded import committed, configure, cut_upstream, whole_id

DISKS = [f"archive/{number}" for number in range(5)]


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    upstream = cut_upstream(short_path)
    yield upstream
    upstream.prove_sound()


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as start:
        yield start


@needs_mounts
def test_directories_are_read_by_the_nodes_that_see_them(
    upstream: Upstream, tmp_path: Path, start: Start
) -> None:
    """Node a has only the archive, as another file system than here; node b has all else."""
    for disk in DISKS:
        upstream.write(f"{disk}/x/file", disk)
    address, _ = started_cluster(tmp_path, start, 0)
    where = dict.fromkeys(DISKS, "node-a") | dict.fromkeys(("pool", "small"), "node-b")
    configure(upstream, digest="later", where=where, url=f"dask://{address}")
    (tmp_path / "empty").mkdir()
    tree = upstream.tree
    views = {
        "node-a": f"mount -t overlay -o lowerdir={tree}:{tmp_path}/empty none {tree}\n"
        f"for path in pool small; do mount -t tmpfs none {tree}/$path; done",
        "node-b": f"mount -t tmpfs none {tree}/archive",
    }
    for label, view in views.items():
        start_worker(tmp_path, start, "--resources", f"{label}=2", mounts=view)
    for number in range(2):  # the second one is planned from a commit
        assert committed(upstream)["problems"] == []
        assert (upstream.entries_id, upstream.links()) == whole_id(
            upstream, tmp_path / str(number), digest="later"
        )
        for path in where:
            upstream.write(f"{path}/new", "new")
            upstream.write(f"{path}/y/new", "new")
    assert committed(upstream)["problems"] == []
    for command in ("digest", "scrub", "audit"):
        done = run_server(upstream.root, command, NAME, *["--full"] * (command == "scrub"))
        assert (done.returncode, done.stderr) == (0, "")
    assert upstream.entries_id == whole_id(upstream, tmp_path / "digests")[0]


def test_a_label_that_no_worker_has_leaves_the_rest(
    upstream: Upstream, tmp_path: Path, start: Start
) -> None:
    address, _ = started_cluster(tmp_path, start, 0)
    start_worker(tmp_path, start, "--resources", "node-a=1")
    where = {"pool/a": "node-c", "pool/b": "node-a"}
    configure(upstream, digest="later", where=where, url=f"dask://{address}", deadline="4s")
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=SECONDS)
    committed(upstream, "--engine", "local://2")
    for path in (*where, "small"):
        upstream.write(f"{path}/new", "new")
    problems = committed(upstream, code=ExitCode.INCOMPLETE)["problems"]
    assert [each[0] for each in problems] == ["pool/a"]
    assert "no worker has its label" in problems[0][1]
    assert {"pool/b/new", "small/new", "pool/a/7"} <= upstream.paths()
    assert "pool/a/new" not in upstream.paths()
    done = run_server(upstream.root, "digest", NAME, "--json")
    assert done.returncode == ExitCode.INCOMPLETE, done.stderr
    assert {each[0].rpartition("/")[0] for each in json.loads(done.stdout)["problems"]} == {
        "pool/a"
    }
    start_worker(tmp_path, start, "--resources", "node-c=1")
    configure(upstream, where=where, url=f"dask://{address}")
    committed(upstream)
    assert upstream.entries_id == whole_id(upstream, tmp_path / "1")[0]


@pytest.mark.parametrize("engine", ["local://2", "dask://"])
def test_other_engines_scan_labelled_shards_anywhere(
    upstream: Upstream, tmp_path: Path, engine: str
) -> None:
    configure(upstream, where={"pool/b/c": "node-a"}, url=engine)
    committed(upstream)
    assert upstream.entries_id == whole_id(upstream, tmp_path)[0]


def test_the_plan_is_listed_by_label(upstream: Upstream) -> None:
    configure(upstream, where={"pool/b/c": "node-a", "none": "node-b"})
    upstream.commit()

    def planned(*arguments: str, code: int = 0) -> list[tuple[str, str | None]]:
        done = run_server(upstream.root, "shards", NAME, "--json", *arguments)
        assert done.returncode == code, done.stderr
        lines = map(json.loads, done.stdout.splitlines())
        return [(each["path"], each["where"]) for each in lines if "where" in each]

    labelled, unlabelled = [("pool/b/c", "node-a")], [("pool/a", None), ("small", None)]
    assert planned() == labelled + unlabelled
    assert planned("--where", "node-a") == labelled
    assert planned("--where", "") == unlabelled
    assert planned("--where", "node-b") == []
    assert planned("--where", "node-c", code=ExitCode.USAGE) == []
