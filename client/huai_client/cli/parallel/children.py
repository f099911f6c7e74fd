"""Child processes: passes on pieces of their output, and reports their end.

One call waits for all of them.  Rule: `stop` leaves none behind.  It asks each to end, waits, and
kills those that still run.
"""

import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Self

from huai_client.cli.parallel.child import ChildProcess

OutputHandler = Callable[[bytes], None]
"""A function that gets pieces of output; an empty one is the end."""
_PIECE = 65_536
_PATIENCE = 30.0
"""Seconds that children have to end after SIGTERM."""


class _Running(NamedTuple):
    child: ChildProcess
    began: float
    ended: Callable[[int, float], None]


class Children:
    """Child processes by key, as a context manager."""

    def __init__(self) -> None:
        self._pipes = selectors.DefaultSelector()
        self._running: dict[str, _Running] = {}

    def __enter__(self) -> Self:
        return self

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
        """Do `work` in a process; `ended` gets its exit code and its duration in seconds.

        `handlers` get its standard output, and its standard error.
        """
        child = ChildProcess(work)
        self._running[key] = _Running(child, time.monotonic(), ended)
        for pipe, handler in zip((child.out, child.err), handlers, strict=True):
            self._pipes.register(pipe, selectors.EVENT_READ, (key, handler))

    def wake_by(self, handle: int) -> None:
        """Let `poll` return when `handle` is readable; its data is discarded."""
        self._pipes.register(handle, selectors.EVENT_READ, None)

    def end(self, key: str) -> None:
        """Ask a process to end."""
        self._running[key].child.stop(signal.SIGTERM)

    def poll(self, seconds: float | None) -> None:
        """Pass on output for at most `seconds`, and reap those that have ended."""
        for selected, _ in self._pipes.select(seconds):
            piece = os.read(selected.fd, _PIECE)
            if selected.data is None:
                continue
            key, handler = selected.data
            if not piece:
                self._pipes.unregister(selected.fd)
            handler(piece)
            if not piece and not self._has_open_pipe(key):
                self._reap(key)

    def stop(self) -> None:
        """End the processes that still run."""
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

    def _has_open_pipe(self, key: str) -> bool:
        return any(
            each.data is not None and each.data[0] == key for each in self._pipes.get_map().values()
        )

    def _reap(self, key: str) -> None:
        running = self._running.pop(key)
        running.ended(running.child.reap(), time.monotonic() - running.began)
