"""Sets how a program reacts to Ctrl-C and SIGTERM.

Imports little: a program calls `leave_quietly` before it imports its own modules.
"""

import os
import signal
from collections.abc import Callable
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]
_SIGNALLED = 128
"""The number that a shell adds to the signal that ended a program."""


def leave_quietly() -> None:
    """End the process at once, without cleanup, on SIGINT or SIGTERM, until `heed` is used."""
    for number in (signal.SIGINT, signal.SIGTERM):
        heed(number, lambda number, _: os._exit(_SIGNALLED + number))


def heed(number: signal.Signals, handler: _Handler) -> None:
    """Set `handler` for a signal, unless the parent process ignores it (`nohup`, `&`)."""
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, handler)
