"""Copying one open file to another: as a clone that shares its blocks, or block by block.

Works on handles.  A file system that cannot clone is no error.
"""

import errno
import fcntl
import os

from huai_client.deadline import NEVER, Deadline
from huai_native import _native

_FICLONE = 0x40049409
"""ioctl_ficlone(2)."""
_BLOCK = 1 << 20
_SECTOR = 512
"""What `st_blocks` counts (stat(2))."""


def clone(source: int, target: int) -> bool:
    """Let `target` share all blocks of `source`; False if the file system cannot do this."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def copy(source: int, target: int, deadline: Deadline = NEVER) -> bytes:
    """Copy `source` to the empty file `target`, holes as holes; returns its BLAKE3-256 hash.

    Raises `TimeUpError` at the deadline.
    """
    found = os.fstat(source)
    sparse = found.st_blocks * _SECTOR < found.st_size
    hasher, end = _native.Blake3(), 0
    while block := os.pread(source, _BLOCK, end):
        deadline.check("a copy was not finished")
        place, end = end, end + len(block)
        if not sparse or _data_from(source, place) < end:
            _write(target, memoryview(block), place)
        hasher.update(block)
    os.ftruncate(target, end)
    return hasher.digest()


def _data_from(handle: int, place: int) -> int | float:
    """The offset of the next data; infinity: only a hole follows."""
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
