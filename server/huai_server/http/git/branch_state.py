"""The state of a module's branch, read cheaply enough to be read for every request.

Rule: a branch in a doubtful state gives None, and no response is cached for None.  A wrong state
would send an old response as the newest one.
"""

import os
import re
from pathlib import Path

from huai_schema.git.objects import BRANCH

_OBJECT_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LOOSE_BYTES = 128
_PACKED_BYTES = 1 << 20
_PACKED_LINE = re.compile(rb"^([0-9a-f]{40,64}) " + BRANCH.encode() + rb"$", re.MULTILINE)


def read_branch_state(repository: Path) -> bytes | None:
    """Return the commit id (hex) of the branch; None without a commit or a plain file."""
    content = _read(f"{repository}/{BRANCH}", _LOOSE_BYTES)
    if content is not None:
        value = content.rstrip(b"\n")
        return value if _OBJECT_ID.fullmatch(value) else None
    packed = _read(f"{repository}/packed-refs", _PACKED_BYTES)
    line = _PACKED_LINE.search(packed) if packed else None
    return line[1] if line else None


def _read(path: str, limit: int) -> bytes | None:
    """Return the first `limit` bytes of a file, or None if it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(handle, limit)
    except OSError:
        return None
    finally:
        os.close(handle)
