"""Delays SIGINT and SIGTERM while a program is started.

The exception of a signal that arrives within `subprocess.Popen` would lose a process that runs.
The handlers are delayed, because a program that is started would inherit blocked signals.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

_Handler = Callable[[int, FrameType | None], object]


class DelayedSignals:
    """A block that delays SIGINT and SIGTERM until `deliver`, or its end.

    In another thread than the main one it does nothing.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, _Handler] = {}
        self._arrived: list[int] = []
        self._is_delaying = False

    def __enter__(self) -> Self:
        """Replace handlers that Python code has set for both signals, in the main thread only."""
        if threading.current_thread() is threading.main_thread():  # no other one calls handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._handle)
            self._is_delaying = True
        return self

    def __exit__(self, *_: object) -> None:
        self.deliver()

    def deliver(self) -> None:
        """Restore the handlers, and call them for signals that arrived; later calls do nothing."""
        if self._is_delaying:
            self._is_delaying = False
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            for number in self._arrived:
                signal.raise_signal(number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Keep a signal for `deliver` while signals are delayed, or else call its handler."""
        if self._is_delaying:
            self._arrived.append(number)
        else:  # while handlers are replaced
            self._handlers[number](number, frame)
