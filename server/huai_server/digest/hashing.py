"""Reading one file for its digest, and noticing if it changed meanwhile."""

import os
from collections.abc import Callable

from blake3 import blake3

from huai_server.digest.cache import Identity

_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ChangedError(Exception):
    """The file is not, or no longer, what the scan saw."""


class StoppedError(Exception):
    """The digest is not wanted any more."""


def hash_file(root: int, path: bytes, expected: Identity, stopped: Callable[[], bool]) -> bytes:
    """BLAKE3-256 of the file at `path` below the open directory `root`.

    `ChangedError` if it is not the file with the identity that the scan saw, before or after
    reading: the identity also rules out that a symlink led elsewhere.  `OSError` if it cannot
    be read.  `stopped` is asked now and then; `StoppedError` once it is true.
    """
    # Relative to the root: an absolute path may be longer than the system allows.
    handle = os.open(path, _READ, dir_fd=root)
    try:
        if identify(os.fstat(handle)) != expected:
            raise ChangedError
        hasher = blake3()
        while chunk := os.read(handle, _CHUNK):
            hasher.update(chunk)
            if stopped():
                raise StoppedError
        if identify(os.fstat(handle)) != expected:
            raise ChangedError
        return hasher.digest()
    finally:
        os.close(handle)


def identify(status: os.stat_result) -> Identity:
    """The identity of a file as `stat` tells it."""
    return Identity(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )
