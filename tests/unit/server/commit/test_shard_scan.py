"""A plan of shards and the scan of one, where something is malformed or vanishes."""

import shutil
from pathlib import Path

import msgspec
import pytest

from huai_schema import __version__
from huai_server.commit import shard_scan
from huai_server.commit.engine import run_task
from huai_server.commit.shard_plan import plan_shards, subdirectories
from huai_server.commit.shard_record import NO_BASE
from huai_server.commit.shard_scan import ShardTask, scan
from huai_server.config.tables import Module
from tests.support.committing import NAME, Upstream
from tests.support.sharded import cut_upstream


@pytest.fixture
def upstream(short_path: Path) -> Upstream:
    return cut_upstream(short_path)


def test_a_shard_that_vanishes_before_it_is_cut_has_failed_alone(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanish(module: Module, above: bytes) -> list[bytes]:
        shutil.rmtree(upstream.tree / "pool")
        return subdirectories(module, above)

    monkeypatch.setattr(shard_scan, "subdirectories", vanish)
    task = ShardTask(str(upstream.root), NAME, b"pool", NO_BASE, str(tmp_path / "to"), most=100)
    text = msgspec.json.encode(task).decode()
    answer = msgspec.json.decode(run_task(scan, text, "pool", __version__))
    assert "pool" in answer["message"]
    assert answer["code"] == 0  # the other shards are scanned


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
