"""The processes of the demo: each leads a process group, and none outlives the demo.

Services run until they are ended; commands run to their end, and with everything they started
are killed when the demo is interrupted.  Kept services are written down with the time of their
start, so that `end_kept` never ends a stranger that has got the same number since.
"""

import contextlib
import json
import os
import signal
import subprocess
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

_COMMAND_SECONDS = 600
_START_SECONDS = 30
_GRACE_SECONDS = 10
_POLL_SECONDS = 0.02
_SHOWN = 300
"""The number of characters of a failed command that are shown."""
_TICKS = os.sysconf("SC_CLK_TCK")

Argument = str | Path


class DemoError(Exception):
    """An error because the demo cannot continue."""


class Finished(NamedTuple):
    """The result of a command."""

    output: str
    """The output of both streams."""
    seconds: float


class Processes:
    """The processes that the demo has started and that may still run."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """Write logs of services to `folder`."""
        self.folder = folder
        self._environment = dict(environment)
        self._running: list[subprocess.Popen[str]] = []

    def service(self, name: str, *command: Argument) -> subprocess.Popen[str]:
        """Start a process that runs until `end`, with a readable standard output."""
        with Path(self.folder, f"{name}.log").open("w") as log:
            return self._start(command, subprocess.PIPE, log)

    def run(self, *command: Argument, accept: Sequence[int] = (0,)) -> Finished:
        """Run a command; `DemoError` with its output if its exit code is not in `accept`."""
        begin = time.monotonic()
        process = self._start(command, subprocess.PIPE, subprocess.STDOUT)
        try:
            output, _ = process.communicate(timeout=_COMMAND_SECONDS)
        except BaseException:
            _end(process)
            raise
        finally:
            self._running.remove(process)
        if process.returncode not in accept:
            words = textwrap.shorten(" ".join(map(str, command)), _SHOWN)
            raise DemoError(f"{words}\nended with exit code {process.returncode}:\n{output}")
        return Finished(output, time.monotonic() - begin)

    def end(self) -> None:
        """End all processes, the last one first."""
        while self._running:
            _end(self._running.pop())

    def keep(self) -> None:
        """Leave the services running; `end_kept` ends them."""
        services = [[process.pid, _started(process.pid)] for process in self._running]
        _kept_file(self.folder).write_text(json.dumps(services))
        self._running.clear()

    def _start(
        self, command: Sequence[Argument], stdout: int, stderr: int | IO[str]
    ) -> subprocess.Popen[str]:
        with _uninterrupted():
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=self._environment,
                text=True,
                errors="surrogateescape",
                start_new_session=True,
            )
            self._running.append(process)
        return process


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay signals: a process must be recorded before it can be ended."""
    signals: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: signals.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in signals:
            signal.raise_signal(late)


def first_line(process: subprocess.Popen[str]) -> str:
    """Return the first line of a service, when it is ready."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise DemoError(f"{process.args!r} did not come up (exit code {process.wait()})")
    return line


def wait_until_greeted(process: subprocess.Popen[str], greeting: Sequence[Argument]) -> None:
    """Wait until the command `greeting` succeeds."""
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        done = subprocess.run(greeting, capture_output=True, timeout=_START_SECONDS, check=False)
        if done.returncode == 0:
            return
        time.sleep(_POLL_SECONDS)
    raise DemoError(f"{process.args!r} did not come up")


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """Return the processor time of a service and of its children, after they have ended."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + _GRACE_SECONDS
    while children.exists() and children.read_text() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return sum(map(int, _fields(process.pid)[11:15])) / _TICKS


def end_kept(folder: Path) -> bool:
    """End the services that `keep` left running; return False if `folder` lists none."""
    try:
        services = json.loads(_kept_file(folder).read_text())
    except FileNotFoundError:
        return False
    for pid, started in reversed(services):
        if _started(pid) == started:
            os.killpg(pid, signal.SIGTERM)
            deadline = time.monotonic() + _GRACE_SECONDS
            while _started(pid) == started and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            if _started(pid) == started:
                os.killpg(pid, signal.SIGKILL)
    return True


def _kept_file(folder: Path) -> Path:
    return folder / "processes.json"


def _end(process: subprocess.Popen[str]) -> None:
    """End a process by SIGTERM, then its group by SIGKILL."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def _started(pid: int) -> str:
    """Return the start time of a process in the kernel's ticks; empty if it has ended."""
    try:
        fields = _fields(pid)
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _fields(pid: int) -> list[str]:
    """Return the fields of proc(5) /proc/PID/stat from the third on: the second may have blanks."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
