"""Images whose pages are kept in memory, so that listings need not read them from the disk.

The kernel reads the metadata of an EROFS image in single pages, thousands of them for a large
listing.  This reads the image ahead sequentially, and locks its pages.
"""

import ctypes
import mmap
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from huai_server.fallback.libc import call, last_error, library
from huai_server.fallback.memory import available_bytes

_STEP = 64 << 20
"""The bytes that are locked in one call; signals are handled between calls."""
_SHARE = 2
"""The divisor of the available memory that gives the limit for an image."""
_FAILED = ctypes.c_void_p(-1).value


class _Locked(NamedTuple):
    """A mapping of an image that is completely in memory."""

    address: int
    size: int

    def drop(self) -> None:
        """Unmap the image, so that its pages may leave memory."""
        call("munmap", ctypes.c_void_p(self.address), ctypes.c_size_t(self.size))


class ResidentImages:
    """The images that this process keeps in memory."""

    def __init__(self, on_message: Callable[[str], None]) -> None:
        """`on_message` is called once for each image that cannot be kept."""
        self._on_message = on_message
        self._mappings: dict[tuple[int, int], _Locked | None] = {}
        """The mappings by device and inode; None for an image that could not be locked."""

    def keep(self, images: Iterable[Path]) -> None:
        """Lock these images in memory, and release all others; missing images are skipped.

        One that is too large or cannot be locked is reported once, and not tried again.
        """
        identities = set()
        for image in images:
            try:
                handle = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:  # a newer one has just replaced it
                continue
            try:
                status = os.fstat(handle)
                identity = status.st_dev, status.st_ino
                identities.add(identity)
                if identity not in self._mappings:
                    self._mappings[identity] = self._try_lock(image, handle, status.st_size)
            finally:
                os.close(handle)
        for identity in self._mappings.keys() - identities:
            locked = self._mappings.pop(identity)
            if locked is not None:
                locked.drop()

    def _try_lock(self, image: Path, handle: int, size: int) -> _Locked | None:
        """Lock the pages of an image in memory, and return them; None if that fails (reported)."""
        if size > available_bytes() // _SHARE:
            reason = "too large for the available memory"
        else:
            try:
                return _lock(handle, size)
            except OSError as error:
                reason = f"{os.strerror(error.errno or 0)}; see RLIMIT_MEMLOCK"
        self._on_message(f"{image}: not kept in memory, so listings may read the disk: {reason}")
        return None


def _lock(handle: int, size: int) -> _Locked:
    """Map the open file `handle`, and lock its pages in memory; raises `OSError`."""
    os.posix_fadvise(handle, 0, size, os.POSIX_FADV_WILLNEED)
    # Python's mmap has no mlock, and returns no address for it.
    mapping = library().mmap
    mapping.restype = ctypes.c_void_p
    mapping.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address = mapping(None, size, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
    if address == _FAILED:
        raise last_error()
    locked = _Locked(address, size)
    try:
        for begin in range(0, size, _STEP):
            length = ctypes.c_size_t(min(_STEP, size - begin))
            call("mlock", ctypes.c_void_p(address + begin), length)
    except OSError:
        locked.drop()
        raise
    return locked
