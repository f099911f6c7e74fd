"""Copying one open file to another: as a clone that shares its blocks, or block by block.

Works on handles; knows nothing of trees.  What the file system cannot do is no error.
"""

import errno
import fcntl
import os

from huai_client.deadline import NEVER, Deadline
from huai_client.tree.hashing import digest_of

_FICLONE = 0x40049409
"""ioctl_ficlone(2)."""
_SECTOR = 512
"""What `st_blocks` counts (stat(2))."""


def clone(source: int, target: int) -> bool:
    """Let `target` share all blocks of `source`; False where that is not possible."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def copy(source: int, target: int, deadline: Deadline = NEVER) -> bytes:
    """Copy everything to the empty file `target`, holes as holes; the BLAKE3-256 of it.

    Raises `TimeUpError` at the deadline, with the rest not copied.
    """
    found = os.fstat(source)
    sparse = found.st_blocks * _SECTOR < found.st_size
    end = 0

    def write(block: memoryview, place: int) -> None:
        nonlocal end
        deadline.check("a copy was not finished")
        end = place + len(block)
        if not sparse or _data_from(source, place) < end:
            _write(target, block, place)

    digest = digest_of(source, found.st_size, write)
    os.ftruncate(target, end)
    return digest


def _data_from(handle: int, place: int) -> int | float:
    """Where the next data begin."""
    try:
        return os.lseek(handle, place, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return float("inf")
        raise


def _write(handle: int, block: memoryview, place: int) -> None:
    while block:
        written = os.pwrite(handle, block, place)
        block = block[written:]
        place += written
