"""A folder in memory, for tests that write through to a disk thousands of times.

There a sync costs nothing.  What a killed process leaves is in the kernel either way; what a
power cut leaves is modelled (`crash_states`), not tried.
"""

import os
import tempfile
from pathlib import Path

_MEMORY = "/dev/shm"  # noqa: S108 - folders of our own are made there
_ROOM = 1 << 30
"""Bytes; containers often have less, and then a disk is used."""


def memory_folder() -> Path:
    """The parent of temporary folders: TMPDIR if it is in memory, so that it goes with all in it.

    A worker of pytest that is killed, because it ends too slowly, removes nothing.
    """
    folder = Path(tempfile.gettempdir())
    if not folder.is_relative_to(_MEMORY) and os.access(_MEMORY, os.W_OK):
        room = os.statvfs(_MEMORY)
        if room.f_bavail * room.f_frsize >= _ROOM:
            return Path(_MEMORY)
    return folder
