"""Child processes: passes on pieces of their output, and reports their end.

One call waits for all of them.  Rule: `stop` leaves none behind.  It asks each to end, waits, and
kills those that still run.

A child is forked, because Python and the configuration are already loaded.  Rule: no thread may
have been started before, and the child never returns.
"""

import ctypes
import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import NamedTuple, NoReturn

CRASHED = 1
"""The exit code of Python after an unexpected error."""
_SET_PARENT_DEATH_SIGNAL = 1
_ENDING = (signal.SIGTERM, signal.SIGINT)


class ChildProcess:
    """A process that does one piece of work; the caller reads its output, and calls `reap`."""

    def __init__(self, work: Callable[[], int]) -> None:
        """Fork a process that calls `work`, and ends with the exit code that it returns.

        SIGTERM and SIGINT are blocked in it until `work` calls `unblock_signals`.  `out` and `err`
        are handles to read its standard output and standard error.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        try:
            with _signals_blocked():
                self._process = os.fork()
                if self._process == 0:
                    _run_child(work, parent, out, err)
        finally:
            os.close(out)
            os.close(err)

    def stop(self, number: signal.Signals) -> None:
        """Send it a signal; call this only before `reap`."""
        os.kill(self._process, number)

    def reap(self) -> int:
        """Wait until the process ends; return its exit code, or 128 plus the signal's number.

        Closes the pipes.
        """
        _, status = os.waitpid(self._process, 0)
        os.close(self.out)
        os.close(self.err)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


def unblock_signals() -> None:
    """Deliver the signals that were blocked while the process began."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def forget_handlers() -> None:
    """Reset the signal handlers of the parent, except ignored signals, and unblock the signals.

    A signal that came while the process began ends it here.
    """
    signal.set_wakeup_fd(-1)
    for number in (*_ENDING, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    unblock_signals()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block SIGTERM and SIGINT: one at this moment would leave a child that is never reaped."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_child(work: Callable[[], int], parent: int, out: int, err: int) -> NoReturn:
    """Do `work` in the child, and end the process with its exit code.

    `parent`: the parent's process id; `out`, `err`: handles to write output to.
    """
    code = CRASHED
    try:
        _set_up_child(parent, out, err)
        code = work()
    except BaseException:  # noqa: BLE001 - nothing may get back into the parent's code
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)


def _set_up_child(parent: int, out: int, err: int) -> None:
    """Set up the child: its session, standard streams and handles, and SIGTERM if the parent dies.

    By the session Ctrl-C reaches only the parent, which passes it on once.
    """
    os.setsid()
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(CRASHED)  # the parent ended before the signal was requested
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, handle in enumerate((nothing, out, err)):
        os.dup2(handle, number)
    # Not os.closerange: where a process may have 10^9 files open, it can take minutes.
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2:
            with suppress(OSError):  # the handle of the listing itself
                os.close(number)


OutputHandler = Callable[[bytes], None]
"""A function that gets pieces of output; an empty one is the end."""
_PIECE = 65_536
_PATIENCE = 30.0
"""Seconds that children have to end after SIGTERM."""


class _Running(NamedTuple):
    child: ChildProcess
    began: float
    ended: Callable[[int, float], None]


class Children(AbstractContextManager["Children"]):
    """Child processes by key, as a context manager."""

    def __init__(self) -> None:
        self._pipes = selectors.DefaultSelector()
        self._running: dict[str, _Running] = {}

    def __exit__(self, *_: object) -> None:
        """Stop all processes."""
        try:
            self.stop()
        finally:
            self._pipes.close()

    def __len__(self) -> int:
        """Return the number of running processes."""
        return len(self._running)

    def __contains__(self, key: str) -> bool:
        """Return True if a process runs."""
        return key in self._running

    def start(
        self,
        key: str,
        work: Callable[[], int],
        handlers: tuple[OutputHandler, OutputHandler],
        ended: Callable[[int, float], None],
    ) -> None:
        """Do `work` in a child process; `ended` gets its exit code and its duration in seconds.

        `handlers` get its standard output, and its standard error.
        """
        child = ChildProcess(work)
        self._running[key] = _Running(child, time.monotonic(), ended)
        for pipe, handler in zip((child.out, child.err), handlers, strict=True):
            self._pipes.register(pipe, selectors.EVENT_READ, (key, handler))

    def wake_by(self, handle: int) -> None:
        """Let `poll` return when `handle` is readable; what is read from it is discarded."""
        self._pipes.register(handle, selectors.EVENT_READ, None)

    def end(self, key: str) -> None:
        """Send SIGTERM to a process, without waiting for its end."""
        self._running[key].child.stop(signal.SIGTERM)

    def poll(self, seconds: float | None) -> None:
        """Wait at most `seconds` for output and pass it on; None: without a limit.

        Reaps a process that has ended, and calls its `ended`.
        """
        for selected, _ in self._pipes.select(seconds):
            piece = os.read(selected.fd, _PIECE)
            if selected.data is None:
                continue
            key, handler = selected.data
            if not piece:
                self._pipes.unregister(selected.fd)
            handler(piece)
            open_pipes = (pipe.data for pipe in self._pipes.get_map().values() if pipe.data)
            if not piece and key not in (open_key for open_key, _ in open_pipes):
                running = self._running.pop(key)
                running.ended(running.child.reap(), time.monotonic() - running.began)

    def stop(self) -> None:
        """Ask the running processes to end, wait half a minute, kill those that remain, reap all.

        `ended` is not called for killed ones.
        """
        try:
            for running in self._running.values():
                running.child.stop(signal.SIGTERM)
            deadline = time.monotonic() + _PATIENCE
            while self._running and time.monotonic() < deadline:
                with suppress(OSError):  # our own output may be closed
                    self.poll(_PATIENCE / 10)
        finally:
            for running in self._running.values():
                running.child.stop(signal.SIGKILL)
                running.child.reap()
            self._running.clear()
