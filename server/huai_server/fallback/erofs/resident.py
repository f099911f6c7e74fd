"""Images that stay in memory: a listing of one that was dropped reads it page by page.

The kernel reads the metadata of an EROFS image in single pages, thousands of them for a large
listing; here the image is read ahead, in its order, and its pages are locked.
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
"""Bytes that are locked at a time; signals are seen in between."""
_SHARE = 2
"""An image may take one part in so many of the memory that is available."""
_FAILED = ctypes.c_void_p(-1).value


class _Locked(NamedTuple):
    """A mapping of an image, all of it in memory."""

    address: int
    size: int

    def drop(self) -> None:
        call("munmap", ctypes.c_void_p(self.address), ctypes.c_size_t(self.size))


class ResidentImages:
    """The images that this process keeps in memory."""

    def __init__(self, on_message: Callable[[str], None]) -> None:
        """`on_message` is told, once for each image, that it is not kept."""
        self._on_message = on_message
        self._held: dict[tuple[int, int], _Locked | None] = {}
        """By device and inode: a mounted image is never changed.  None: it was tried in vain."""

    def keep(self, images: Iterable[Path]) -> None:
        """Keep these images in memory, and no other ones any more."""
        wanted = set()
        for image in images:
            try:
                handle = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:  # a newer one has just replaced it
                continue
            try:
                status = os.fstat(handle)
                identity = status.st_dev, status.st_ino
                wanted.add(identity)
                if identity not in self._held:
                    self._held[identity] = self._tried(image, handle, status.st_size)
            finally:
                os.close(handle)
        for identity in self._held.keys() - wanted:
            locked = self._held.pop(identity)
            if locked is not None:
                locked.drop()

    def _tried(self, image: Path, handle: int, size: int) -> _Locked | None:
        if size > available_bytes() // _SHARE:
            reason = "too large for the memory that is available"
        else:
            try:
                return _lock(handle, size)
            except OSError as error:
                reason = f"{os.strerror(error.errno or 0)}; see RLIMIT_MEMLOCK"
        self._on_message(f"{image}: not kept in memory, so listings may read it: {reason}")
        return None


def _lock(handle: int, size: int) -> _Locked:
    """Map the file `handle` and bring it into memory for as long as it is mapped."""
    os.posix_fadvise(handle, 0, size, os.POSIX_FADV_WILLNEED)
    # Python's own mmap has no mlock, and gives no address for one.
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
