"""A thread of `serve` that repeats a check while a block runs."""

import logging
import threading
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Self

_END_SECONDS = 10.0
_log = logging.getLogger(__name__)


class PeriodicThread(AbstractContextManager["PeriodicThread"]):
    """A thread that calls `look` at once and then after each `pause` (s), and logs its errors.

    It runs while the context is entered.
    """

    def __init__(self, name: str, pause: float) -> None:
        self._pause = pause
        self._stopping = threading.Event()
        # A daemon thread: the next start finishes interrupted work.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread, and wait at most 10 s for its current `look`."""
        self._stopping.set()
        self._thread.join(_END_SECONDS)

    @property
    def is_stopping(self) -> bool:
        """True if `look` should return."""
        return self._stopping.is_set()

    @abstractmethod
    def look(self) -> None:
        """Do the thread's work once; return soon once `is_stopping`.  Errors are logged."""

    def _run(self) -> None:
        """Call `look` after each pause, until stopped; errors are logged."""
        while True:
            try:
                self.look()
            except Exception:  # noqa: BLE001 - else the thread would end
                _log.exception("%s: a check failed; the thread continues", self._thread.name)
            if self._stopping.wait(self._pause):
                return
