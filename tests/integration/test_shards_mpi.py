"""Commits whose shards are scanned by the ranks of an MPI job."""

import os
import signal
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from tests.support.committing import SECONDS, Upstream
from tests.support.sharded import (
    committed,
    configure,
    cut_upstream,
    ended,
    make_slow,
    started,
    whole_id,
)


@pytest.fixture
def upstream(short_path: Path) -> Upstream:
    upstream = cut_upstream(short_path)
    committed(upstream)
    return upstream


def test_a_stopped_rank_is_replaced(upstream: Upstream, tmp_path: Path) -> None:
    configure(upstream, deadline="4s")
    make_slow(upstream)
    running, worker = started(upstream, b"pool/a", "mpi://", ranks=3)
    os.kill(worker, signal.SIGSTOP)
    assert ended(running) == 0
    assert upstream.entries_id == whole_id(upstream, tmp_path)[0]


def test_a_job_ends_if_its_only_worker_is_stopped(upstream: Upstream) -> None:
    configure(upstream, deadline="4s")
    make_slow(upstream)
    running, worker = started(upstream, b"pool/a", "mpi://", ranks=2)
    os.kill(worker, signal.SIGSTOP)
    _, errors = running.communicate(timeout=SECONDS)
    assert running.returncode == ExitCode.NETWORK
    assert b"no process of the engine gives a sign of life" in errors


def test_a_killed_rank_ends_the_job_and_the_next_one_commits(
    upstream: Upstream, tmp_path: Path
) -> None:
    head = upstream.head
    make_slow(upstream)
    running, worker = started(upstream, b"pool/a", "mpi://", ranks=3)
    os.kill(worker, signal.SIGKILL)
    assert ended(running) != 0
    assert upstream.head == head
    committed(upstream, "--engine", "local://2")
    assert upstream.entries_id == whole_id(upstream, tmp_path)[0]
