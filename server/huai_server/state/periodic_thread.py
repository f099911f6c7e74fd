"""A thread of `serve` that looks at something again and again, as long as a block lasts."""

import logging
import threading
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Self

_END_SECONDS = 10.0
_log = logging.getLogger(__name__)


class PeriodicThread(AbstractContextManager["PeriodicThread"]):
    """Looks at once, and then with a pause after each look; an error that it raises is logged."""

    def __init__(self, name: str, pause: float) -> None:
        """`pause` in seconds."""
        self._pause = pause
        self._stopping = threading.Event()
        # A daemon: whatever it is cut in is taken up by the next start.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Finish what is in work, if that takes moments."""
        self._stopping.set()
        self._thread.join(_END_SECONDS)

    @property
    def is_stopping(self) -> bool:
        """Whether a look should end."""
        return self._stopping.is_set()

    @abstractmethod
    def look(self) -> None:
        """Do what there is to do."""

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except Exception:  # noqa: BLE001 - else nobody looks any more
                _log.exception("%s: a look failed; it goes on", self._thread.name)
            if self._stopping.wait(self._pause):
                return
