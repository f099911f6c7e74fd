"""Runs the work of several modules, so many at a time, and prints their output.

The output goes to one stream as whole lines, each with its module's name.  If a signal ends this
process, it sends the signal once to each child, waits, and kills those that still run; the next run
finishes their work.
"""

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import BinaryIO

from huai_client.cli.parallel.child import ChildProcess

Work = Callable[[str], int]
"""What is done for the module of that name; gives the exit code."""
_PIECE = 65_536
_PATIENCE = 30.0
"""Seconds that children have to end after they were asked to."""


def named(name: bytes, line: bytes) -> bytes:
    """`line` with its module's name in front, unless it begins with that."""
    return line if line.startswith(name + b": ") else name + b": " + line


class Lines:
    """Gathers pieces of output, and writes lines."""

    def __init__(self, name: str, target: BinaryIO, *, as_json: bool) -> None:
        """Lines of JSON carry the name in themselves."""
        self._name = b"" if as_json else name.encode()
        self._target = target
        self._begun = b""

    def hear(self, piece: bytes) -> None:
        """Add a piece, and write the lines that are complete; an empty piece is the end."""
        *lines, self._begun = (self._begun + piece).split(b"\n")
        if not piece and self._begun:
            lines, self._begun = [self._begun], b""
        if not lines:
            return
        told = (named(self._name, line) if self._name else line for line in lines)
        self._target.write(b"".join(line + b"\n" for line in told))
        self._target.flush()


class ModulePool:
    """The processes of several modules."""

    def __init__(
        self, work: Work, ended: Callable[[str, int, float], None], *, as_json: bool
    ) -> None:
        """`ended` hears a module's name, its exit code and how many seconds it took."""
        self._work = work
        self._ended = ended
        self._as_json = as_json
        self._pipes = selectors.DefaultSelector()
        self._running: dict[str, tuple[ChildProcess, float]] = {}
        self.codes: dict[str, int] = {}
        """Of those that have ended."""

    def run(self, names: Iterable[str], *, parallel: int) -> None:
        """Do the work of all, at most `parallel` at a time, begun in this order."""
        with self._pipes:
            try:
                for name in names:
                    while len(self._running) >= parallel:
                        self._hear(None)
                    self._start(name)
                while self._running:
                    self._hear(None)
            finally:
                self._stop()

    def _start(self, name: str) -> None:
        child = ChildProcess(lambda: self._work(name))
        self._running[name] = child, time.monotonic()
        for handle, target in (child.out, sys.stdout.buffer), (child.err, sys.stderr.buffer):
            lines = Lines(name, target, as_json=self._as_json and handle == child.out)
            self._pipes.register(handle, selectors.EVENT_READ, (name, lines))

    def _hear(self, seconds: float | None) -> None:
        """Pass on output for at most `seconds`, and reap the children that have ended."""
        for key, _ in self._pipes.select(seconds):
            name, lines = key.data
            piece = os.read(key.fd, _PIECE)
            if not piece:
                self._pipes.unregister(key.fd)
            lines.hear(piece)
            if not piece and not self._is_heard(name):
                self._reap(name)

    def _is_heard(self, name: str) -> bool:
        return any(key.data[0] == name for key in self._pipes.get_map().values())

    def _reap(self, name: str) -> None:
        child, began = self._running.pop(name)
        self.codes[name] = child.reap()
        self._ended(name, self.codes[name], time.monotonic() - began)

    def _stop(self) -> None:
        """End what is still running."""
        try:
            for child, _ in self._running.values():
                child.stop(signal.SIGTERM)
            deadline = time.monotonic() + _PATIENCE
            while self._running and time.monotonic() < deadline:
                with suppress(OSError):  # nobody may be left to tell
                    self._hear(_PATIENCE / 10)
        finally:
            for child, _ in self._running.values():
                child.stop(signal.SIGKILL)
                child.reap()
