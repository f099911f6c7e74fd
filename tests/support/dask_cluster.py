"""A Dask scheduler and its workers, as processes on loopback."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tests.support.committing import SECONDS, server_environment
from tests.support.mounting import with_own_mounts

if TYPE_CHECKING:
    from collections.abc import Callable

Start: TypeAlias = "Callable[..., subprocess.Popen[bytes]]"
_FILE = "scheduler.json"


@contextmanager
def starting() -> Iterator[Start]:
    """Yield a function that starts a part of a cluster; its processes end with the block.

    With `mounts`, a script, it has mounts of its own.
    """
    programs = []

    def start(part: str, *arguments: str, mounts: str = "") -> "subprocess.Popen[bytes]":
        node = with_own_mounts(f'{mounts}\nexec "$@"') if mounts else []
        command = [*node, sys.executable, "-m", f"distributed.cli.dask_{part}", "--no-dashboard"]
        programs.append(
            subprocess.Popen(
                [*command, "--host", "127.0.0.1", *arguments],
                env=server_environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        return programs[-1]

    try:
        yield start
    finally:
        for program in programs:
            program.kill()
            program.wait()


def start_worker(folder: Path, start: Start, *arguments: str, mounts: str = "") -> int:
    """Start a worker of the cluster in `folder`; return its process."""
    limits = ["--nthreads", "1", "--no-nanny", "--memory-limit", "0"]
    places = ["--scheduler-file", str(folder / _FILE), "--local-directory", str(folder)]
    return start("worker", *places, *limits, *arguments, mounts=mounts).pid


def started_cluster(folder: Path, start: Start, workers: int) -> tuple[str, list[int]]:
    """Start a scheduler and workers; return its host and port, and the processes."""
    file = folder / _FILE
    scheduler = start("scheduler", "--port", "0", "--scheduler-file", str(file)).pid
    end = time.monotonic() + SECONDS
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    processes = [scheduler, *(start_worker(folder, start) for _ in range(workers))]
    address = json.loads(file.read_text())["address"]
    return address.split("//")[1], processes
