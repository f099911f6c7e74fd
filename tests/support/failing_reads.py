"""A file that a disk can no longer read: each read(2) of it fails, in native code and rsync too."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from tests.support.system_calls import Call, supervise


def unreadable(path: Path, work: Callable[[], object]) -> object:
    """Do `work` in a child in which reading the file that is now at `path` gives EIO."""
    handle = os.open(path, os.O_PATH)  # so that no other file gets its inode
    try:
        damaged = os.fstat(handle)

        def decide(call: Call) -> int | None:
            try:
                read = os.stat(f"/proc/{call.thread}/fd/{call.arguments[0]}")
            except OSError:
                return None
            return errno.EIO if os.path.samestat(read, damaged) else None

        return supervise(("read",), work, decide).result
    finally:
        os.close(handle)
