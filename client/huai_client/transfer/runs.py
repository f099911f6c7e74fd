"""The runs of rsync in flight, and the one switch that ends them all."""

import threading
from collections.abc import Callable

from huai_client.transfer.process import Run


class StoppedError(Exception):
    """The transfer is being ended from elsewhere; never leaves the package."""


class Runs:
    """Shared by all streams of a transfer."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._over = threading.Event()
        self._guard = threading.Lock()
        self._running: set[Run] = set()

    @property
    def over(self) -> bool:
        """Whether `stop` was called."""
        return self._over.is_set()

    def check(self) -> None:
        """Raise `StoppedError` after `stop`."""
        if self.over:
            raise StoppedError

    def stop(self) -> None:
        """End every run, and let none begin."""
        self._over.set()
        with self._guard:
            for run in self._running:
                run.stop()

    def pause(self, seconds: float) -> None:
        """Sleep, unless `stop` is called."""
        self._over.wait(seconds)

    def carry_out(
        self, start: Callable[[], Run], progressed: Callable[[int], None]
    ) -> tuple[Run, int]:
        """Start a run and wait for its end; with its exit code."""
        with self._guard:
            self.check()
            run = start()
            self._running.add(run)
        try:
            return run, run.wait(progressed)
        finally:
            with self._guard:
                self._running.discard(run)
