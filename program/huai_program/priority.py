"""Sets a low priority for work that is not urgent: processor (nice) and disk (ionice).

Linux has both for each thread; a new thread inherits those of the one that starts it.  Rule: if a
priority cannot be set, the work is done anyway.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CALLS = {
    "x86_64": (251, 252),
    "aarch64": (30, 31),
    "riscv64": (30, 31),
    "loongarch64": (30, 31),
    "ppc64le": (273, 274),
    "s390x": (282, 283),
}
"""The numbers of ioprio_set(2) and ioprio_get(2), for which the C library has no function."""
_THIS_THREAD = (1, 0)
"""IOPRIO_WHO_PROCESS, and 0 for the calling thread."""
_IDLE = 3 << 13
"""IOPRIO_CLASS_IDLE, which uses the disk only while no other process does."""
_NICE = 19


@contextmanager
def idle_disk() -> Iterator[None]:
    """Give this thread idle disk priority during the block.

    Threads that it starts meanwhile keep the priority.
    """
    before = io_priority()
    _set(_IDLE)
    try:
        yield
    finally:
        if before is not None:
            _set(before)


def lower_priority() -> None:
    """Set the lowest priority (nice 19) for this thread, for good."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)


def io_priority() -> int | None:
    """Return class and level as ioprio_get(2) does, or None if unknown."""
    return _call(1)


def _set(priority: int) -> None:
    _call(0, priority)


def _call(which: int, *arguments: int) -> int | None:
    """Call ioprio_set(2), or ioprio_get(2) if `which` is 1; None if it fails or is unknown."""
    numbers = _CALLS.get(platform.machine())
    # A 32-bit process has other numbers, one of which ends it.
    if numbers is None or sys.maxsize < 1 << 32:
        return None
    values = (numbers[which], *_THIS_THREAD, *arguments)
    result: int = ctypes.CDLL(None).syscall(*(ctypes.c_long(value) for value in values))
    return None if result < 0 else result
