"""Processes under test: what runs below one, and waiting for something to happen.

Rule to keep: a wait is bounded, so that what never happens fails a test; the bound is far beyond
what a slow machine needs, so that no test asserts a time.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

SECONDS = 60
_POLL = 0.02


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that has to come true."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(_POLL)


def run_program(
    *command: str | Path, env: Mapping[str, str] | None = None, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and keep what it prints; `options` are those of `subprocess.run`."""
    ready: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    settings = {**ready, "timeout": SECONDS, **options}
    return subprocess.run(command, env=env, check=check, **settings)


def open_paths(process: int) -> list[str]:
    """Return what the handles of a process lead to; one closed meanwhile is left out."""
    paths: list[str] = []
    for handle in os.listdir(f"/proc/{process}/fd"):
        with contextlib.suppress(FileNotFoundError):
            paths.append(os.readlink(f"/proc/{process}/fd/{handle}"))
    return paths


def end_process(process: subprocess.Popen[Any], grace: float) -> None:
    """Ask a process to end; kill it if it has not after `grace` seconds."""
    process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def is_running(process: int) -> bool:
    """Return False for a zombie, too: an orphan may never be reaped."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the second: it ended while it was read
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def children(process: int) -> list[int]:
    """The processes that have it for a parent: ended ones stay until they are waited for."""
    processes: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            processes += map(int, path.read_text().split())
    return processes


def descendants(root: int) -> set[int]:
    """Process ids below `root`, the unreaped ones included."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    processes = {root}
    for _ in parents:
        more = {pid for pid, parent in parents.items() if parent in processes}
        if more <= processes:
            break
        processes |= more
    return processes - {root}


@contextlib.contextmanager
def interrupted_start() -> Iterator[None]:
    """Send SIGINT while the block starts a program; no process is left, and SIGINT is as before."""

    def interrupt(_frame: object, event: str, function: object) -> None:
        if event == "c_return" and getattr(function, "__name__", "") == "fork_exec":
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    before = children(os.getpid())
    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        sys.setprofile(None)
    assert children(os.getpid()) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
