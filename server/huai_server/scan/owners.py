"""Names of users and groups, each looked up once a scan.

An id becomes `#ID` if it has no name, or one that is longer than the format allows or that begins
with `#`.  A failed look-up is an error, because an id must not replace its name while a name
service is down.  Python's look-ups do not distinguish "no name" from "failed", so this calls the C
library (getpwuid_r(3)).
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache

from huai_schema.limits import OWNER_BYTES
from huai_server.scan.types import ScanError

_UNKNOWN = (0, errno.ENOENT, errno.ESRCH, errno.EBADF, errno.EPERM)
"""The results that getpwuid_r(3) documents as "not found"."""
_BUFFER_BYTES = 4096
_BUFFER_MAX = 16 << 20
"""A group may list thousands of members."""
_RECORD_BYTES = 256
"""More than a `struct passwd` or `struct group` takes; the name is the first field of both."""


class OwnerNames:
    """A cache of owner names for one scan: `user` and `group` return the name of an id.

    Both raise `ScanError` if the look-up fails.
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self.user = cache(lambda uid: _owner_name(uid, libc.getpwuid_r))
        self.group = cache(lambda gid: _owner_name(gid, libc.getgrgid_r))


def _owner_name(number: int, look_up: Callable[..., int]) -> bytes:
    """Return the name of an id, or `#ID` if it has none, or one that the format cannot hold.

    Raises `ScanError` if the look-up fails.
    """
    name = _look_up_name(number, look_up)
    return name if 0 < len(name) <= OWNER_BYTES and not name.startswith(b"#") else b"#%d" % number


def _look_up_name(number: int, function: Callable[..., int]) -> bytes:
    """Return the name of an id, empty if it has none; `ScanError` if the look-up fails."""
    record = ctypes.create_string_buffer(_RECORD_BYTES)
    result = ctypes.c_void_p()
    size, error = _BUFFER_BYTES, errno.ERANGE
    while error == errno.ERANGE and size <= _BUFFER_MAX:
        buffer = ctypes.create_string_buffer(size)
        error = function(
            ctypes.c_uint32(number), record, buffer, ctypes.c_size_t(size), ctypes.byref(result)
        )
        size *= 2
    if result.value:
        return ctypes.c_char_p.from_buffer(record).value or b""
    if error not in _UNKNOWN:
        raise ScanError(
            f"the name of an owner or a group cannot be looked up: {os.strerror(error)}",
            hint="check the services for passwd and group in /etc/nsswitch.conf; owners = false"
            " records no owners",
        )
    return b""
