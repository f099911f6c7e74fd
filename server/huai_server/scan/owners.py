"""Names of users and groups, each looked up once a scan.

An id becomes `#ID` if it has no name, or one that is longer than the format allows or that begins
with `#`.  A look-up that fails is an error: if a name service is down, an id must not take the
place of its name.  Python's look-ups do not tell "no name" from "failed", so the functions of the C
library are called (getpwuid_r(3)).
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache

from huai_schema.limits import OWNER_BYTES
from huai_server.scan.types import owner_error

_UNKNOWN = (0, errno.ENOENT, errno.ESRCH, errno.EBADF, errno.EPERM)
"""What getpwuid_r(3) takes for "not found"."""
_ANSWER_BYTES = 4096
_ANSWER_MAX = 16 << 20
"""A group may list thousands of members."""
_RECORD_BYTES = 256
"""More than a `struct passwd` or `struct group` takes; the name is the first field of both."""


class OwnerNames:
    """Remembers the names of one scan; a new scan sees new names."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self.user = cache(lambda uid: _name(uid, libc.getpwuid_r))
        self.group = cache(lambda gid: _name(gid, libc.getgrgid_r))


def _name(number: int, look_up: Callable[..., int]) -> bytes:
    name = _ask(number, look_up)
    return name if 0 < len(name) <= OWNER_BYTES and not name.startswith(b"#") else b"#%d" % number


def _ask(number: int, look_up: Callable[..., int]) -> bytes:
    """The name of a number; empty if it has none."""
    record = ctypes.create_string_buffer(_RECORD_BYTES)
    found = ctypes.c_void_p()
    size, error = _ANSWER_BYTES, errno.ERANGE
    while error == errno.ERANGE and size <= _ANSWER_MAX:
        answer = ctypes.create_string_buffer(size)
        error = look_up(
            ctypes.c_uint32(number), record, answer, ctypes.c_size_t(size), ctypes.byref(found)
        )
        size *= 2
    if found.value:
        return ctypes.c_char_p.from_buffer(record).value or b""
    if error not in _UNKNOWN:
        raise owner_error(OSError(error, os.strerror(error)))
    return b""
