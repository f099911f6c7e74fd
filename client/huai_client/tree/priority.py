"""Work that has time: it gives way to everybody else, on the processor and on the disk.

Linux keeps both per thread, and a new thread begins with those of the one that starts it.
Rule: it is a courtesy; where it cannot be done, the work is done all the same.
"""

import ctypes
import os
import platform
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
"""Numbers of ioprio_set(2) and ioprio_get(2), for which the C library has no function."""
_THIS_THREAD = (1, 0)
"""IOPRIO_WHO_PROCESS, the calling thread."""
_IDLE = 3 << 13
"""IOPRIO_CLASS_IDLE: the disk is used when nobody else does."""
_NICE = 19


@contextmanager
def idle_disk() -> Iterator[None]:
    """Read and write when nobody else does: this thread, and those that it starts."""
    before = io_priority()
    _set(_IDLE)
    try:
        yield
    finally:
        if before is not None:
            _set(before)


def lower_priority() -> None:
    """Let everybody else compute first; for a thread that ends after this work."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)


def io_priority() -> int | None:
    """Class and level as ioprio_get(2) has them; None where that is not known."""
    return _call(1)


def _set(priority: int) -> None:
    _call(0, priority)


def _call(which: int, *arguments: int) -> int | None:
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        return None
    values = (numbers[which], *_THIS_THREAD, *arguments)
    result: int = ctypes.CDLL(None).syscall(*(ctypes.c_long(value) for value in values))
    return None if result < 0 else result
