"""The number of clients that the fallback's rsync daemon serves now.

The daemon locks four bytes of the module's lock file for each client while it is connected
(connection.c of rsync).  This module tests those locks and takes none.
"""

import fcntl
import struct
from pathlib import Path
from typing import NamedTuple

_BYTES = 4
"""The length of the lock for one client."""
_LOCK = struct.Struct("@hhqqi4x")
"""`struct flock` of Linux: type, whence, start, length, process."""


class FallbackSlots(NamedTuple):
    """The lock file in which the daemon records its clients."""

    lock_file: Path
    slots: int
    """The most clients that it serves at once."""


def fallback_clients(fallback: FallbackSlots) -> int | None:
    """Count the connected clients; None if the lock file is missing or cannot be read."""
    try:
        with fallback.lock_file.open("rb") as file:
            return sum(_is_locked(file.fileno(), slot) for slot in range(fallback.slots))
    except OSError:
        return None


def _is_locked(handle: int, slot: int) -> bool:
    """True if a read lock of this slot would block."""
    request = _LOCK.pack(fcntl.F_RDLCK, 0, slot * _BYTES, _BYTES, 0)
    return bool(_LOCK.unpack(fcntl.fcntl(handle, fcntl.F_GETLK, request))[0] != fcntl.F_UNLCK)
