"""Commits whose shards are scanned by the workers of Dask."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from tests.support.committing import (
    ENVIRONMENT,
    NAME,
    SECONDS,
    Upstream,
    server_command,
    server_environment,
)
from tests.support.sharded import (
    configure,
    cut_upstream,
    ended,
    make_slow,
    scanning,
    started,
    whole_id,
)

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def upstream(short_path: Path) -> Iterator[Upstream]:
    upstream = cut_upstream(short_path)
    yield upstream
    upstream.prove_sound()


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a part of a cluster."""
    programs = []

    def start(part: str, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", f"distributed.cli.dask_{part}", "--no-dashboard"]
        programs.append(
            subprocess.Popen(
                [*command, "--host", "127.0.0.1", *arguments],
                env=server_environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        return programs[-1]

    yield start
    for program in programs:
        program.kill()
        program.wait()


def started_cluster(folder: Path, start: Start, workers: int) -> tuple[str, list[int]]:
    """Start a scheduler and workers; return its host and port, and the processes."""
    file = folder / "scheduler.json"
    arguments = ["--scheduler-file", str(file)]
    processes = [start("scheduler", "--port", "0", *arguments)]
    limits = ["--nthreads", "1", "--no-nanny", "--memory-limit", "0"]
    end = time.monotonic() + SECONDS
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    places = ["--local-directory", str(folder)]
    processes += [start("worker", *arguments, *limits, *places) for _ in range(workers)]
    address = json.loads(file.read_text())["address"]
    return address.split("//")[1], [process.pid for process in processes]


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
    running, killed = started(upstream, b"pool", f"dask://{address}")
    assert killed in workers
    os.kill(killed, signal.SIGKILL)
    stopped = scanning(upstream, b"pool", killed)
    assert stopped in workers
    os.kill(stopped, signal.SIGSTOP)
    assert ended(running) == 0
    assert (upstream.entries_id, upstream.links()) == whole_id(upstream, tmp_path / "1")


def test_a_run_whose_scheduler_is_gone_is_continued_by_another_cluster(
    upstream: Upstream, tmp_path: Path, start: Start
) -> None:
    address, (scheduler, _) = started_cluster(tmp_path, start, 1)
    make_slow(upstream)
    running, _ = started(upstream, b"pool", f"dask://{address}")
    os.kill(scheduler, signal.SIGKILL)
    assert ended(running) == ExitCode.NETWORK
    assert upstream.repository.head() is None
    committed = commit_by(upstream, "dask://")
    assert committed.returncode == 0, committed.stderr
    assert upstream.entries_id == whole_id(upstream, tmp_path / "1")[0]


def test_a_missing_library_is_named(upstream: Upstream) -> None:
    hide = "import sys; sys.modules['distributed'] = None; "
    done = commit_by(upstream, "dask://", hide)
    assert done.returncode == ExitCode.REQUIREMENT, done.stderr
    assert "huai[dask]" in done.stderr


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
    ],
)
def test_an_engine_that_cannot_be_used_is_named(
    upstream: Upstream, url: str, code: int, words: str
) -> None:
    done = commit_by(upstream, url)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
