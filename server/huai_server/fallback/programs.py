"""Starting rsync: the one place of the server, beside git's, where programs run.

The daemon is stock rsync.  All that makes it a fallback stands in its environment (the preload
library) and in its configuration.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO

from huai_schema.errors import ExitCode, HuaiError

_START_SECONDS = 10.0
_POLL_SECONDS = 0.02
_KILL_SECONDS = 2.0
_QUESTION = b"@RSYNCD: 29.0\n#list\n"
"""Ends a connection so that nothing has to be logged as an error."""


class ProgramError(HuaiError):
    """Rsync is missing, or does not start."""

    exit_code = ExitCode.REQUIREMENT


def find(program: str) -> Path:
    """The path of `program`, or `ProgramError`."""
    found = shutil.which(program)
    if found is None:
        raise ProgramError(
            f"{program}: no such program", hint="install rsync, or let fallback.rsync name it"
        )
    return Path(found)


class Daemon:
    """An rsync daemon in the foreground, in a process group of its own."""

    def __init__(
        self, program: Path, config: Path, address: tuple[str, int], library: Path | None
    ) -> None:
        """Start it; `wait_until_ready` tells when it accepts connections."""
        self._host, self.port = address
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        if library is not None:
            environment["LD_PRELOAD"] = str(library)
        command = [str(program), "--daemon", "--no-detach", f"--config={config}"]
        command += [f"--port={self.port}", *([f"--address={self._host}"] if self._host else [])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )

    @property
    def group(self) -> int:
        """The process group of the listener and of all its connections."""
        return self._process.pid

    def relay(self, line: Callable[[str], None]) -> None:
        """Hand on each line that it, or a process of a connection, writes."""
        if self._process.stderr is not None:
            Thread(target=_relay, args=(self._process.stderr, line), daemon=True).start()

    def ended(self) -> int | None:
        """The exit status of the listener; None while it runs."""
        return self._process.poll()

    def wait_until_ready(self) -> None:
        """Return when it greets; `ProgramError` if it ends before, or takes for ever."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if (status := self._process.poll()) is not None:
                raise ProgramError(
                    f"rsync ended at once with status {status}",
                    hint="its own words stand above; is the port taken, or below 1024?",
                )
            if self._greets():
                return
            time.sleep(_POLL_SECONDS)
        raise ProgramError("rsync does not accept connections", hint="see what it says above")

    def stop_listening(self) -> None:
        """Connections go on."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(_KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """The listener and all connections."""
        self.stop_listening()
        end_group(self.group)

    def _greets(self) -> bool:
        host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104 (compared)
        try:
            with socket.create_connection((host, self.port), timeout=1) as connection:
                greeting = connection.recv(64)
                connection.sendall(_QUESTION)
                while connection.recv(4096):
                    pass
                return greeting.startswith(b"@RSYNCD:")
        except OSError:
            return False


def is_running(group: int) -> bool:
    """Whether a process group has any process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def end_group(group: int) -> None:
    """Ask all of a group to end, and make it end."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        deadline = time.monotonic() + _KILL_SECONDS
        while time.monotonic() < deadline and is_running(group):
            time.sleep(_POLL_SECONDS)
        os.killpg(group, signal.SIGKILL)


def free_port(host: str) -> int:
    """A port that nobody listens on now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def daemon(
    program: Path, config: Path, address: tuple[str, int], library: Path | None
) -> Iterator[list[str]]:
    """A daemon for a while; yields what it has said so far."""
    said: list[str] = []
    running = Daemon(program, config, address, library)
    running.relay(said.append)
    try:
        running.wait_until_ready()
        yield said
    finally:
        running.stop()


def fetch(program: Path, url: str, folder: Path, *, seconds: float) -> int:
    """Run rsync as a client, to bring all below `url` into `folder`; returns its exit code."""
    command = [str(program), "-r", "--times", "--links", "--timeout=10", url, f"{folder}/"]
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    done = subprocess.run(
        command, capture_output=True, timeout=seconds, check=False, env=environment
    )
    return done.returncode


def _relay(stream: IO[bytes], line: Callable[[str], None]) -> None:
    with stream:
        for raw in stream:
            line(raw.decode("utf-8", "replace").rstrip("\n"))
