"""A plan of shards and the scan of one, where something is malformed or vanishes."""

import shutil
from pathlib import Path

import msgspec
import pytest

from huai_program.engine.tasks import run_task
from huai_schema import __version__
from huai_server.commit.shard_plan import plan_shards
from huai_server.commit.shard_record import NO_BASE
from huai_server.commit.shard_scan import ShardTask, scan
from tests.support.committing import NAME, Upstream
from tests.support.sharded import configure, cut_upstream


@pytest.fixture
def upstream(short_path: Path) -> Upstream:
    return cut_upstream(short_path)


def test_a_shard_that_vanishes_has_failed_alone(upstream: Upstream, tmp_path: Path) -> None:
    shutil.rmtree(upstream.tree / "pool")
    task = ShardTask(str(upstream.root), NAME, b"pool", NO_BASE, str(tmp_path / "to"))
    text = msgspec.json.encode(task).decode()
    answer = msgspec.json.decode(run_task(scan, text, "pool", __version__))
    assert "pool" in answer["message"]
    assert answer["code"] == 0  # the other shards are scanned


def test_a_first_commit_is_cut_by_levels(upstream: Upstream, tmp_path: Path) -> None:
    for number in range(60):
        upstream.write(f"wide/{number:02}/x/file", "x")
        upstream.write(f"more/{number:02}/x/file", "x")
    paths = [path.decode() for path in plan_shards(None, upstream.module, tmp_path)]
    assert len(paths) == 123
    assert paths[59:64] == ["more/59", "pool/a", "pool/b", "small", "wide/00"]


def test_labels_of_what_is_not_scanned_change_no_plan(upstream: Upstream, tmp_path: Path) -> None:
    (upstream.tree / "link").symlink_to("pool")
    upstream.write("left/out/file")
    upstream.configure(exclude=("/left/",))
    upstream.commit()
    _, past = upstream.repository.snapshot(upstream.head)
    expected = [plan_shards(each, upstream.module, tmp_path) for each in (None, past)]
    where = dict.fromkeys(("pool/none", "none", "link/a", "left/out", "top", "top/none"), "node")
    configure(upstream, where=where)
    assert [plan_shards(each, upstream.module, tmp_path) for each in (None, past)] == expected


def test_a_labelled_directory_is_a_shard_before_it_is_committed(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.commit()
    _, past = upstream.repository.snapshot(upstream.head)
    configure(upstream, where={"pool/b/c/new/er": "node", "/small/": "node"})
    upstream.write("pool/b/c/new/er/file")
    planned = plan_shards(past, upstream.module, tmp_path)
    assert planned == {b"pool/a": 153, b"pool/b/c/new/er": 0, b"small": 22}


@pytest.mark.parametrize(
    "record",
    ['{"none": 1}', '{"00": 1}', f'{{"{"0" * 40}": -1}}', f'{{"{"0" * 40}": {1 << 64}}}', "["],
)
def test_malformed_counts_are_none(upstream: Upstream, tmp_path: Path, record: str) -> None:
    upstream.commit()
    _, past = upstream.repository.snapshot(upstream.head)
    expected = plan_shards(past, upstream.module, tmp_path)
    assert len(expected) == 3
    (tmp_path / "counts").write_text(record)
    assert plan_shards(past, upstream.module, tmp_path) == expected


def test_counts_that_cannot_be_read_are_none(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit()
    _, past = upstream.repository.snapshot(upstream.head)
    (tmp_path / "counts").mkdir()
    assert plan_shards(past, upstream.module, tmp_path)
