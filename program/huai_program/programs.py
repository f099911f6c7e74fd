"""Runs programs within a time-out: those of the administrator, git, rsync and signers.

Knows nothing of hooks, proofs and syncs.  Rules to keep: no shell; a program inherits no handle
and no lock, and has its own process group, which is ended at the time-out or when we end.  Of the
output of an administrator's program all is read, and a bounded part of it is passed on.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

from huai_program.delayed_signals import DelayedSignals
from huai_schema.paths import show

_PIECE = 65_536
_TICK = 0.1
_GRACE = 5.0
"""Seconds that a process group has to end after SIGTERM."""
_LINE = 1000
"""The bytes of a line that are passed on."""
_MOST = 65_536
"""The bytes of all output that are passed on."""
_READS = 16
"""The reads after the program has ended, for output of its children."""


_PREFIX = "HUAI_"


def environment(outer: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return `outer` without variables `HUAI_*`, and with `variables`."""
    inherited = {name: value for name, value in outer.items() if not name.startswith(_PREFIX)}
    return {**inherited, **variables}


class Output(NamedTuple):
    """The end of a program and all of its output."""

    code: int
    """The exit code; negative for the signal that ended it."""
    output: bytes
    errors: bytes


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program, which is ended with its group if it runs on after the block.

    A signal that arrives during the start is delivered when the process is known.  `options` are
    those of `subprocess.Popen`.
    """
    with DelayedSignals() as delayed:
        process = subprocess.Popen(command, start_new_session=True, **options)
        try:
            delayed.deliver()
            yield process
        finally:
            if process.returncode is None:
                end_group(process)
            # The context manager of `Popen` would wait without a limit.
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()


def run_captured(
    command: Sequence[str], standard_input: bytes = b"", *, seconds: float, **options: Any
) -> Output:
    """Run a program to its end, whatever its exit code.

    Raises `TimeoutError` after `seconds`, when the program is ended, and `OSError` if it cannot be
    started.  `options` are those of `subprocess.Popen`.
    """
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with started(command, **pipes, **options) as process:
        try:
            output, errors = process.communicate(standard_input, seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error
        return Output(process.returncode, output, errors)


class PrintedLines:
    """The output of a program as lines for people, at most 64 KiB; call `close` at its end."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._begun = b""
        self._passed = 0
        self._dropped = 0
        self.last = ""
        """The last line that is not empty."""

    def feed(self, piece: bytes) -> None:
        """Pass on the lines that are complete, and pieces of one that is too long."""
        *lines, self._begun = (self._begun + piece).split(b"\n")
        for line in lines:
            self._pass_on(line)
        while len(self._begun) > _LINE:
            self._pass_on(self._begun[:_LINE])
            self._begun = self._begun[_LINE:]

    def close(self) -> None:
        """Pass on the rest, and the number of bytes that were dropped."""
        if self._begun:
            self._pass_on(self._begun)
        if self._dropped:
            self._on_line(f"({self._dropped:,} bytes more)")

    def _pass_on(self, line: bytes) -> None:
        """Pass on the beginning of a line, or drop it for lack of room; count dropped bytes."""
        text = line[:_LINE].rstrip(b"\r")
        if text.strip():
            self.last = show(text)
        room = max(0, _MOST - self._passed)
        if len(text) <= room:
            self._passed += len(text) + 1
            self._on_line(show(text) if text else "")
            self._dropped += len(line) - len(line[:_LINE])
        else:
            self._passed = _MOST
            self._dropped += len(line) + 1


class _RawOutput(PrintedLines):
    """The output of a program as bytes for this one."""

    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        super().__init__(lambda _: None)
        self._on_output = on_output

    def feed(self, piece: bytes) -> None:
        """Pass on all of `piece`, unchanged and without a limit."""
        self._on_output(piece)


def run_program(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    seconds: float,
    on_line: Callable[[str], None],
    on_error_line: Callable[[str], None] | None = None,
    folder: str = "/",
) -> str:
    """Run `command` in `folder`; return the reason of its failure, or an empty text.

    It is ended after `seconds`.  `on_line` is called with each line of output, up to 64 KiB in all;
    `on_error_line`, if given, with those of standard error instead.
    """
    printed = PrintedLines(on_line)
    errors = printed if on_error_line is None else PrintedLines(on_error_line)
    return _run(command, environment, printed, errors, _Limit(seconds, renewed=False), folder)


def read_program(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    seconds: float,
    on_output: Callable[[bytes], None],
) -> str:
    """Run `command` in `/`; return the reason of its failure, or an empty text.

    `on_output` is called with all standard output.  `seconds` limit each pause in any output.
    """
    errors = PrintedLines(lambda _: None)
    limit = _Limit(seconds, renewed=True)
    return _run(command, environment, _RawOutput(on_output), errors, limit, "/")


class _Limit(NamedTuple):
    """The time limit of a program."""

    seconds: float
    renewed: bool
    """True if it begins again with each output."""


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    printed: PrintedLines,
    errors: PrintedLines,
    limit: _Limit,
    folder: str,
) -> str:
    """Run a program to its end or limit; return the reason of a failure, or an empty text."""
    files = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT if errors is printed else subprocess.PIPE,
    }
    with ExitStack() as running:
        try:
            process = running.enter_context(
                started(command, bufsize=0, cwd=folder, env=environment, **files)
            )
        except OSError as error:
            return f"{command[0]} cannot be started: {error.strerror}"
        streams = ((process.stdout, printed), (process.stderr, errors))
        pipes = {stream.fileno(): part for stream, part in streams if stream is not None}
        in_time = _listen(process, pipes, limit)
    for part in pipes.values():
        part.close()
    if not in_time:
        return f"it was ended after its time-out of {limit.seconds:g} s"
    return _failure(process.returncode, errors.last or printed.last)


def _failure(code: int, last: str) -> str:
    """Return the reason of a failure, with the last line; an empty text for exit code 0."""
    if code == 0:
        return ""
    how = f"exit code {code}" if code > 0 else f"killed by signal {-code}"
    return f"{how}: {last}" if last else how


def _listen(
    process: subprocess.Popen[bytes], pipes: Mapping[int, PrintedLines], limit: _Limit
) -> bool:
    """Pass on output; return True if the program ended before the limit, which output may renew."""
    deadline = time.monotonic() + limit.seconds
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
                    if limit.renewed:
                        deadline = time.monotonic() + limit.seconds
                    if not _read(key.fd, pipes[key.fd], 1):
                        selector.unregister(key.fd)
            if process.poll() is not None:
                for pipe, printed in pipes.items():
                    _read(pipe, printed, _READS)
                return True
    return False


def _read(pipe: int, printed: PrintedLines, times: int) -> bool:
    """Read available output, at most `times` pieces; return False at its end."""
    with suppress(BlockingIOError):
        for _ in range(times):
            piece = os.read(pipe, _PIECE)
            if not piece:
                return False
            printed.feed(piece)
    return True


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a program's group by SIGTERM, by SIGKILL after 5 s; then wait for it, at most 5 s."""
    os.killpg(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while time.monotonic() < deadline and not _has_ended(process.pid):
        time.sleep(_TICK)
    # Until we wait for it, no other process can get its number.
    os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)  # it never ends if its disk or file server hangs


def _has_ended(process: int) -> bool:
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
