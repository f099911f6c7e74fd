"""How many clients the rsync daemon of the fallback serves now.

The daemon locks four bytes of the module's lock file for each of them, as long as they are
connected (connection.c of rsync).  Asks about these locks, and takes none.
"""

import fcntl
import struct
from pathlib import Path
from typing import NamedTuple

_BYTES = 4
"""Of each client."""
_LOCK = struct.Struct("@hhqqi4x")
"""`struct flock` of Linux: type, whence, start, length, process."""


class FallbackSlots(NamedTuple):
    """Where the daemon writes down whom it serves."""

    lock_file: Path
    slots: int
    """Clients that it serves at most."""


def fallback_clients(place: FallbackSlots) -> int | None:
    """How many there are; None: there is no daemon, or this user may not ask."""
    try:
        with place.lock_file.open("rb") as file:
            return sum(_is_locked(file.fileno(), slot) for slot in range(place.slots))
    except OSError:
        return None


def _is_locked(handle: int, slot: int) -> bool:
    """Whether a read lock there would have to wait."""
    asked = _LOCK.pack(fcntl.F_RDLCK, 0, slot * _BYTES, _BYTES, 0)
    return bool(_LOCK.unpack(fcntl.fcntl(handle, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK)
