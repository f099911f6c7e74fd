"""Processes that are heard: what they write comes in pieces, and their end is told.

One call waits for all of them.  Rule: `stop` leaves none behind: it asks each to end, waits, and
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

Hear = Callable[[bytes], None]
"""Gets a piece of output; an empty one is the end."""
_PIECE = 65_536
_PATIENCE = 30.0
"""Seconds that children have to end after they were asked to."""


class _Running(NamedTuple):
    child: ChildProcess
    began: float
    ended: Callable[[int, float], None]


class Children:
    """The processes, by a key of each; a context manager."""

    def __init__(self) -> None:
        """There are none yet."""
        self._pipes = selectors.DefaultSelector()
        self._running: dict[str, _Running] = {}

    def __enter__(self) -> Self:
        """Nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all."""
        try:
            self.stop()
        finally:
            self._pipes.close()

    def __len__(self) -> int:
        """How many run."""
        return len(self._running)

    def __contains__(self, key: str) -> bool:
        """Whether it runs."""
        return key in self._running

    def start(
        self,
        key: str,
        work: Callable[[], int],
        hear: tuple[Hear, Hear],
        ended: Callable[[int, float], None],
    ) -> None:
        """Do `work` in a process; `ended` hears its exit code and how many seconds it took.

        `hear` is called with what it writes to standard output, and to standard error.
        """
        child = ChildProcess(work)
        self._running[key] = _Running(child, time.monotonic(), ended)
        for handle, each in zip((child.out, child.err), hear, strict=True):
            self._pipes.register(handle, selectors.EVENT_READ, (key, each))

    def wake_by(self, handle: int) -> None:
        """Let `hear` return when there is something to read; what it is, is thrown away."""
        self._pipes.register(handle, selectors.EVENT_READ, None)

    def end(self, key: str) -> None:
        """Ask one to end."""
        self._running[key].child.stop(signal.SIGTERM)

    def hear(self, seconds: float | None) -> None:
        """Pass on output for at most `seconds`, and reap those that have ended."""
        for selected, _ in self._pipes.select(seconds):
            piece = os.read(selected.fd, _PIECE)
            if selected.data is None:
                continue
            key, hear = selected.data
            if not piece:
                self._pipes.unregister(selected.fd)
            hear(piece)
            if not piece and not self._is_heard(key):
                self._reap(key)

    def stop(self) -> None:
        """End what is still running."""
        try:
            for each in self._running.values():
                each.child.stop(signal.SIGTERM)
            deadline = time.monotonic() + _PATIENCE
            while self._running and time.monotonic() < deadline:
                with suppress(OSError):  # nobody may be left to tell
                    self.hear(_PATIENCE / 10)
        finally:
            for each in self._running.values():
                each.child.stop(signal.SIGKILL)
                each.child.reap()
            self._running.clear()

    def _is_heard(self, key: str) -> bool:
        return any(
            each.data is not None and each.data[0] == key for each in self._pipes.get_map().values()
        )

    def _reap(self, key: str) -> None:
        running = self._running.pop(key)
        running.ended(running.child.reap(), time.monotonic() - running.began)
