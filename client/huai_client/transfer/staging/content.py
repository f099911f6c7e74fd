"""Does what arrived fit its metadata?  The one place that decides it."""

import os
import stat
from enum import Enum

from huai_client.tree.hashing import digest_of
from huai_schema.codec.publish_rules import VOLATILE_BYTES
from huai_schema.entries import File

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
    return _same_content(handle, name, file)


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


def _same_content(handle: int, name: bytes, file: File) -> bool:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    source = os.open(name, flags, dir_fd=handle)
    try:
        return digest_of(source) == file.digest
    finally:
        os.close(source)
