"""The scan of a shard that vanishes."""

import shutil
from pathlib import Path

import msgspec
import pytest

from huai_schema import __version__
from huai_server.commit import shard_scan
from huai_server.commit.engine import run_task
from huai_server.commit.shard_plan import subdirectories
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
