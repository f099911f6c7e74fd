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

if TYPE_CHECKING:
    from collections.abc import Callable

Start: TypeAlias = "Callable[..., subprocess.Popen[bytes]]"


@contextmanager
def starting() -> Iterator[Start]:
    """Yield a function that starts a part of a cluster; its processes end with the block."""
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

    try:
        yield start
    finally:
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
