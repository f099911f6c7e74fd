"""What Ctrl-C and SIGTERM do to a program, from its first moment to its last.

Loads next to nothing: a program calls `leave_quietly` before it loads itself.
"""

import os
import signal
from collections.abc import Callable
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]
_SIGNALLED = 128
"""A shell adds it to the number of the signal that ended a program."""


def leave_quietly() -> None:
    """Until somebody heeds signals, end at once: nothing has begun, or everything is done."""
    for number in (signal.SIGINT, signal.SIGTERM):
        heed(number, lambda number, _: os._exit(_SIGNALLED + number))


def heed(number: signal.Signals, handler: _Handler) -> None:
    """Let `handler` hear a signal, unless whoever started us has it ignored (`nohup`, `&`)."""
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, handler)
