"""Where targets put files: in memory where that can be had, and gone with the process."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = "/dev/shm"  # noqa: S108 - a folder of its own is made there
_OURS = Path(
    tempfile.mkdtemp(prefix="huai-fuzz-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
)
atexit.register(shutil.rmtree, _OURS)


def folder(name: str) -> Path:
    """A new one."""
    path = _OURS / name
    path.mkdir()
    return path
