"""Processes whose kernel seems to lack a system call."""

import ctypes
import struct
from collections.abc import Callable
from typing import TypeVar

from tests.support.unprivileged import in_child

Result = TypeVar("Result")

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_ENOSYS = 38
OPEN_TREE, OPENAT2, CREATE_RULESET = 428, 437, 444
"""System calls that older kernels lack; the last is Landlock's first."""


def without_call(number: int, work: Callable[[], Result]) -> Result:
    """Return what `work` returns in a process whose kernel seems to lack a system call."""

    def restricted() -> Result:
        filters = struct.pack(
            "HBBIHBBIHBBIHBBI",
            *(0x20, 0, 0, 0),  # load the number of the system call
            *(0x15, 0, 1, number),  # if it is the one
            *(0x06, 0, 0, 0x0005_0000 | _ENOSYS),  # answer ENOSYS
            *(0x06, 0, 0, 0x7FFF_0000),  # else allow it
        )
        program = struct.pack("HxxxxxxP", 4, ctypes.addressof(memory := _memory(filters)))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
        assert libc.prctl(_SECCOMP, _FILTER, program) == 0
        assert libc.syscall(number, -1, None, None, 0) == -1
        assert ctypes.get_errno() == _ENOSYS
        del memory
        return work()

    return in_child(restricted)


def _memory(content: bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(content, len(content))
