"""Servers under test, each on a free port of loopback."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import SECONDS, end_process

_STARTS = 5
_POLL = 0.05
_GRACE = 1
"""Seconds for a server to end; its last output is not needed."""

Process = subprocess.Popen[bytes]


@contextmanager
def logging_server(
    command: Callable[[int], Sequence[str]], log: Path, environment: Mapping[str, str]
) -> Iterator[int]:
    """Run the program that `command` says for a port, and end it; yields the port.

    What it writes goes into `log`.
    """

    def start(port: int) -> Process:
        with log.open("wb") as file:
            return subprocess.Popen(
                command(port), env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )

    process, port = on_free_port(start, log.read_text)
    try:
        yield port
    finally:
        end_process(process, _GRACE)


def on_free_port(start: Callable[[int], Process], errors: Callable[[], str]) -> tuple[Process, int]:
    """A server that `start` starts for a port, and the port, once it listens there.

    The server is started again if it ends at once: another process may have taken the port.
    `errors` returns its messages.
    """
    for _ in range(_STARTS):
        port = free_port()
        process = start(port)
        if _listens(process, port):
            return process, port
    raise AssertionError(errors())


def free_port() -> int:
    """Return a port on which no process listens yet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(process: Process, port: int) -> bool:
    """False: it ended."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2):
                return True
        except OSError:
            time.sleep(_POLL)
    process.kill()
    process.wait()
    raise AssertionError("the server does not listen")
