"""The running rsync processes of a transfer, which can be ended together."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from huai_client.run.deadline import Deadline
from huai_client.transfer.errors import OutOfTimeError
from huai_client.transfer.rsync.run import RsyncProcess


class StoppedError(Exception):
    """Another thread ends the transfer; never leaves the package."""


class ProcessGroup:
    """The runs of a transfer, shared by all its streams."""

    def __init__(self, deadline: Deadline) -> None:
        """No run begins after the `deadline`."""
        self._deadline = deadline
        self._over = threading.Event()
        self._guard = threading.Lock()
        self._running: set[RsyncProcess] = set()

    @property
    def over(self) -> bool:
        """True if `stop` was called."""
        return self._over.is_set()

    @property
    def late(self) -> bool:
        """True if the deadline has passed."""
        return self._deadline.over

    def check(self) -> None:
        """Raise `StoppedError` after `stop`."""
        if self.over:
            raise StoppedError

    def begin(self) -> None:
        """Raise `StoppedError` after `stop`, `OutOfTimeError` after the deadline."""
        self.check()
        if self.late:
            raise OutOfTimeError

    def stop(self) -> None:
        """End all runs, and let no other begin."""
        self._over.set()
        with self._guard:
            for run in self._running:
                run.stop()

    def pause(self, seconds: float) -> None:
        """Sleep, unless `stop` is called or the deadline comes; then raise as `begin` does."""
        self._over.wait(max(0.0, min(seconds, self._deadline.left)))
        self.begin()

    @contextmanager
    def running(self, run: RsyncProcess) -> Iterator[RsyncProcess]:
        """Let `stop` end `run` within the block; at once if it was called already."""
        with self._guard:
            self._running.add(run)
        try:
            if self.over:
                run.stop()
            yield run
        finally:
            with self._guard:
                self._running.discard(run)
