"""The folder of the targets' files: in memory if possible, removed with the process."""

import atexit
import shutil
import tempfile
from pathlib import Path

from tests.support.memory_disk import memory_folder

_OURS = Path(tempfile.mkdtemp(prefix="huai-fuzz-", dir=memory_folder()))
atexit.register(shutil.rmtree, _OURS, ignore_errors=True)


def folder(name: str) -> Path:
    """A new one."""
    path = _OURS / name
    path.mkdir()
    return path
