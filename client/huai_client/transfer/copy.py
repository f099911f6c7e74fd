"""Copying one open file to another: as a clone that shares its blocks, or block by block.

Works on handles; knows nothing of trees.  What the file system cannot do is no error.
"""

import errno
import fcntl
import os

from huai_client.deadline import NEVER, Deadline

_FICLONE = 0x40049409
"""ioctl_ficlone(2)."""
_BLOCK = 4 << 20
_THREADS_FROM = 64 << 20
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
    from blake3 import blake3

    found = os.fstat(source)
    size, sparse = found.st_size, found.st_blocks * _SECTOR < found.st_size
    hasher = blake3(max_threads=blake3.AUTO if size >= _THREADS_FROM else 1)
    buffer = memoryview(bytearray(max(1, min(_BLOCK, size))))
    place = 0
    while count := os.preadv(source, [buffer], place):
        deadline.check("a copy was not finished")
        block = buffer[:count]
        hasher.update(block)
        if not sparse or _data_from(source, place) < place + count:
            _write(target, block, place)
        place += count
    os.ftruncate(target, place)
    return hasher.digest()


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
