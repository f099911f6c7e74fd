"""Runs one program of the administrator within a time-out, and passes on what it prints.

Knows nothing of hooks, proofs and syncs.  Rules to keep: no shell; the program inherits no handle
and no lock, and has a process group of its own, which is ended as a whole when its time is over or
when we end.  What it prints is read to its end, however much that is, and passed on within bounds.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from huai_schema.paths import show

_PIECE = 65_536
_TICK = 0.1
_GRACE = 5.0
"""Seconds that a process group has to end after it was asked to."""
_LINE = 1000
"""Bytes of a line that are passed on at once."""
_MOST = 65_536
"""Bytes that are passed on at all."""
_READS = 16
"""After the program has ended, for what its children still print."""


_PREFIX = "HUAI_"


def environment(outer: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program: ours, without what was meant for other programs of huai."""
    kept = {name: value for name, value in outer.items() if not name.startswith(_PREFIX)}
    return {**kept, **variables}


class Printed:
    """What a program prints, as lines for people."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        """`hear` is called with each line."""
        self._hear = hear
        self._begun = b""
        self._heard = 0
        self._dropped = 0
        self.last = ""
        """The last line that is not empty."""

    def take(self, piece: bytes) -> None:
        """Pass on the lines that are complete."""
        *lines, self._begun = (self._begun + piece).split(b"\n")
        for line in lines:
            self._pass_on(line)
        while len(self._begun) > _LINE:
            self._pass_on(self._begun[:_LINE])
            self._begun = self._begun[_LINE:]

    def close(self) -> None:
        """Pass on what is left, and say what was not passed on."""
        if self._begun:
            self._pass_on(self._begun)
        if self._dropped:
            self._hear(f"({self._dropped:,} bytes more)")

    def _pass_on(self, line: bytes) -> None:
        shown = line[:_LINE].rstrip(b"\r")
        if shown.strip():
            self.last = show(shown)
        room = max(0, _MOST - self._heard)
        if len(shown) <= room:
            self._heard += len(shown) + 1
            self._hear(show(shown) if shown else "")
            self._dropped += len(line) - len(line[:_LINE])
        else:
            self._heard = _MOST
            self._dropped += len(line) + 1


def run_program(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    seconds: float,
    hear: Callable[[str], None],
    hear_errors: Callable[[str], None] | None = None,
    folder: str = "/",
) -> str:
    """Run `command` in `folder`; returns why it failed, or nothing.

    `hear` is called with each line that it prints; `hear_errors`, if there is one, with those of
    standard error, which then share no pipe with the others.
    """
    printed = Printed(hear)
    errors = printed if hear_errors is None else Printed(hear_errors)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if hear_errors is None else subprocess.PIPE,
            bufsize=0,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"
    with process:
        try:
            streams = ((process.stdout, printed), (process.stderr, errors))
            pipes = {stream.fileno(): part for stream, part in streams if stream is not None}
            in_time = _listen(process, pipes, time.monotonic() + seconds)
        finally:
            if process.returncode is None:
                end_group(process)
    for part in pipes.values():
        part.close()
    if not in_time:
        return f"it was ended, since its time of {seconds:g} s was over"
    return _failure(process.returncode, errors.last or printed.last)


def _failure(code: int, last: str) -> str:
    if code == 0:
        return ""
    how = f"exit code {code}" if code > 0 else f"killed by signal {-code}"
    return f"{how}: {last}" if last else how


def _listen(
    process: subprocess.Popen[bytes], pipes: Mapping[int, Printed], deadline: float
) -> bool:
    """Whether the program ended before the deadline; what it printed by then was taken."""
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            os.set_blocking(pipe, False)
            selector.register(pipe, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
            else:
                for key, _ in selector.select(_TICK):
                    if not _read(key.fd, pipes[key.fd], 1):
                        selector.unregister(key.fd)
            if process.poll() is not None:
                for pipe, printed in pipes.items():
                    _read(pipe, printed, _READS)
                return True
    return False


def _read(pipe: int, printed: Printed, times: int) -> bool:
    """Take what is there, in pieces, at most so many `times`; False: there will be no more."""
    with suppress(BlockingIOError):
        for _ in range(times):
            piece = os.read(pipe, _PIECE)
            if not piece:
                return False
            printed.take(piece)
    return True


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ask all processes of the group to end, and kill those that did not."""
    os.killpg(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline and not _has_ended(process.pid):
        time.sleep(_TICK)
    # Until it is waited for, nobody else can have its number.
    os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)  # for ever, if its disk or file server hangs


def _has_ended(process: int) -> bool:
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
