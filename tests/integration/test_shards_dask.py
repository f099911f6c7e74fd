"""Commits whose shards are scanned by the workers of Dask."""

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path

import pytest

from huai_program.engine.dask_engine import DaskExecutor
from huai_schema.errors import ExitCode
from tests.support.committing import (
    ENVIRONMENT,
    NAME,
    SECONDS,
    Upstream,
    server_command,
    server_environment,
)
from tests.support.dask_cluster import Start, started_cluster, starting
from tests.support.sharded import (
    configure,
    cut_upstream,
    ended,
    make_slow,
    scanning,
    started,
    whole_id,
)


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    upstream = cut_upstream(short_path)
    yield upstream
    upstream.prove_sound()


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as start:
        yield start


@pytest.fixture
def encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's configuration for TLS, in the environment of all programs."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=dask"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True, timeout=SECONDS)
    values = {"DEFAULT_SCHEME": "tls", "REQUIRE_ENCRYPTION": "true", "TLS__CA_FILE": certificate}
    for part in ("SCHEDULER", "WORKER", "CLIENT"):
        values |= {f"TLS__{part}__KEY": key, f"TLS__{part}__CERT": certificate}
    for name, value in values.items():
        monkeypatch.setitem(ENVIRONMENT, f"DASK_DISTRIBUTED__COMM__{name}", str(value))


@pytest.mark.usefixtures("encrypted")
def test_killed_and_stopped_workers_are_replaced(
    upstream: Upstream, tmp_path: Path, start: Start
) -> None:
    address, (_, *workers) = started_cluster(tmp_path, start, 3)
    configure(upstream, deadline="4s")
    make_slow(upstream)
    running, killed = started(upstream, b"pool/a", f"dask://{address}")
    assert killed in workers
    os.kill(killed, signal.SIGKILL)
    stopped = scanning(upstream, b"pool/a", killed)
    assert stopped in workers
    os.kill(stopped, signal.SIGSTOP)
    assert ended(running) == 0
    assert (upstream.entries_id, upstream.links()) == whole_id(upstream, tmp_path / "1")


def test_a_task_that_kills_its_workers_breaks_the_engine(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    address, _ = started_cluster(tmp_path, start, 1)
    executor = DaskExecutor(address)
    try:
        failure = executor.submit(os._exit, 1).exception(SECONDS)
        assert isinstance(failure, BrokenExecutor)
    finally:
        executor.shutdown(cancel_futures=True)


def test_a_run_whose_scheduler_is_gone_is_continued_by_another_cluster(
    upstream: Upstream, tmp_path: Path, start: Start
) -> None:
    address, (scheduler, _) = started_cluster(tmp_path, start, 1)
    make_slow(upstream)
    running, _ = started(upstream, b"pool/a", f"dask://{address}")
    os.kill(scheduler, signal.SIGKILL)
    assert ended(running) == ExitCode.NETWORK
    assert upstream.repository.head() is None
    committed = commit_by(upstream, "dask://")
    assert committed.returncode == 0, committed.stderr
    assert upstream.entries_id == whole_id(upstream, tmp_path / "1")[0]


@pytest.mark.parametrize(("library", "extra"), [("distributed", "dask"), ("mpi4py", "mpi")])
def test_a_missing_library_is_named(upstream: Upstream, library: str, extra: str) -> None:
    hide = f"import sys; sys.modules[{library!r}] = None; "
    done = commit_by(upstream, f"{extra}://", hide)
    assert done.returncode == ExitCode.REQUIREMENT, done.stderr
    assert f"huai[{extra}]" in done.stderr


def commit_by(upstream: Upstream, url: str, before: str = "") -> "subprocess.CompletedProcess[str]":
    python, flag, program, *arguments = server_command(
        *(upstream.root, "commit", NAME, "--engine", url)
    )
    return subprocess.run(
        [python, flag, before + program, *arguments],
        env={**server_environment(), "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("dask://127.0.0.1:1", ExitCode.NETWORK, "start its scheduler"),
        ("dask://a/b", ExitCode.USAGE, "no such engine"),
        ("spark://a", ExitCode.USAGE, "no such engine"),
        ("mpi://", ExitCode.NETWORK, "mpiexec -n 9 python -m huai_server.mpi"),
    ],
)
def test_an_engine_that_cannot_be_used_is_named(
    upstream: Upstream, url: str, code: int, words: str
) -> None:
    done = commit_by(upstream, url)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
