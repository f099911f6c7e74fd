"""The process of one module: forked from ours, with its output in two pipes.

A fork, because Python and the configuration are already loaded.  Rule: no thread may have been
started before, and the child never returns from here.
"""

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

CRASHED = 1
"""The exit code of Python after an unexpected error."""
_SET_PARENT_DEATH_SIGNAL = 1
_ENDING = (signal.SIGTERM, signal.SIGINT)


class ChildProcess:
    """A process that does one piece of work."""

    def __init__(self, work: Callable[[], int]) -> None:
        """Start it; `work` returns the exit code; signals are blocked until `unblock_signals`."""
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        try:
            with _signals_blocked():
                self._process = os.fork()
                if self._process == 0:
                    _live(work, parent, out, err)
        finally:
            os.close(out)
            os.close(err)

    def stop(self, number: signal.Signals) -> None:
        """Send it a signal; call this only before `reap`."""
        os.kill(self._process, number)

    def reap(self) -> int:
        """Wait for its end; return its exit code, or 128 plus the number of the signal.

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
    """Reset the signal handlers of the parent.

    A signal that came while the process began ends it here.
    """
    signal.set_wakeup_fd(-1)
    for number in (*_ENDING, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    unblock_signals()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals: one at this moment would leave a child that is never reaped."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _live(work: Callable[[], int], parent: int, out: int, err: int) -> NoReturn:
    code = CRASHED
    try:
        _settle(parent, out, err)
        code = work()
    except BaseException:  # noqa: BLE001 - nothing may get back into the parent's code
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)


def _settle(parent: int, out: int, err: int) -> None:
    """Start a session, so that Ctrl-C reaches only the parent, which passes it on once."""
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
