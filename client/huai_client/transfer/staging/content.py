"""Does what arrived fit its metadata?  The one place that decides it.

Reads the file through a handle in blocks: a memory map would turn a disk error into a
signal that ends the whole process.
"""

import os
import stat
from enum import Enum

from huai_schema.codec.publish_rules import VOLATILE_BYTES
from huai_schema.entries import File

_BLOCK = 4 << 20
_THREADS_FROM = 64 << 20
_SECOND = 1_000_000_000


class Arrival(Enum):
    """What became of a file that was asked for."""

    ARRIVED = "arrived"
    MISSING = "missing"
    MISMATCH = "mismatch"


def matches_metadata(handle: int, name: bytes, file: File, *, cut: bool) -> bool:
    """Whether `name` in `handle` is a regular file with the size, time and digest of `file`.

    `cut`: the run that wrote it was interrupted.  rsync keeps a partial file under second 0 of
    the epoch, which is then a time that proves nothing.
    """
    found = os.stat(name, dir_fd=handle, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode) or found.st_size != file.size:
        return False
    if not _same_time(found.st_mtime_ns, file.mtime):
        return False
    if file.digest is None:
        return not (cut and found.st_mtime_ns // _SECOND == 0)
    return same_content(handle, name, file)


def may_stand_for(found: os.stat_result, file: File) -> bool:
    """Whether what arrived for a volatile `file` may be published although it is another one."""
    if not stat.S_ISREG(found.st_mode) or found.st_size > VOLATILE_BYTES:
        return False
    return found.st_mtime_ns >= file.mtime or _same_time(found.st_mtime_ns, file.mtime)


def _same_time(arrived: int, wanted: int) -> bool:
    """Peers older than protocol 31 send whole seconds."""
    if arrived % _SECOND == 0:
        return arrived // _SECOND == wanted // _SECOND
    return arrived == wanted


def same_content(handle: int, name: bytes, file: File) -> bool:
    """Whether `name` in `handle` has the digest of `file`; never without a digest to compare."""
    from blake3 import blake3

    if file.digest is None:
        return False
    threads = blake3.AUTO if file.size >= _THREADS_FROM else 1
    hasher = blake3(max_threads=threads)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    source = os.open(name, flags, dir_fd=handle)
    try:
        block = memoryview(bytearray(max(1, min(_BLOCK, file.size))))
        while count := os.readv(source, [block]):
            hasher.update(block[:count])
    finally:
        os.close(source)
    return hasher.digest() == file.digest
