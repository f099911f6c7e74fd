"""Servers under test, each on a free port of loopback."""

import socket
import subprocess
import time
from collections.abc import Callable

from tests.support.processes import SECONDS

_STARTS = 5
_POLL = 0.05

Process = subprocess.Popen[bytes]


def on_free_port(start: Callable[[int], Process], errors: Callable[[], str]) -> tuple[Process, int]:
    """A server that `start` starts for a port, and the port, once it listens there.

    It is started again if it ends at once: somebody may have taken the port in between.  `errors`:
    what it said.
    """
    for _ in range(_STARTS):
        port = _free_port()
        process = start(port)
        if _listens(process, port):
            return process, port
    raise AssertionError(errors())


def _free_port() -> int:
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
