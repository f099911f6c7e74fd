"""Events of a whole file system by one mark of fanotify(7), for trees too large for inotify.

An event names a directory by a handle, which is looked up when the event is read: in a directory
that was moved since, the new path counts, and the move is an event too.  The caller needs
CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH.
"""

import ctypes
import errno
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from huai_native._native import TreeWatch
from huai_schema.paths import join
from huai_server.fallback.libc import last_error, library

# The numbers are of linux/fanotify.h.
_GROUP = 0x1 | 0x2 | 0x400 | 0x800
"""CLOEXEC, NONBLOCK, REPORT_DIR_FID, REPORT_NAME."""
_WHOLE = 0x1 | 0x100
"""MARK_ADD, MARK_FILESYSTEM."""
_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _ON_DIRECTORY = 0x4000, 0x40000000
_CHANGES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_EVENT = struct.Struct("=IBBHQii")
_RECORD = struct.Struct("=BBHQI")
"""Its kind, padding, its size, the file system; then the handle: its bytes."""
_KIND_AND_BYTES = 8
"""The bytes of a handle before its content."""
_ROOM = 1 << 16
_READS = 64
"""The most reads of one call."""
_MOST_PATHS = 1 << 16


class FileSystemMark:
    """A mark on the file system of a directory; `fileno()` is readable after an event."""

    def __init__(self, top: bytes) -> None:
        """Watch the file system of `top`.

        Raises `OSError` if the kernel, the file system or the rights of the process do not allow
        it, or if the file system is mounted again below `top`, where events would not be seen.
        """
        self._top = self._queue = -1
        self._paths: dict[bytes, bytes | None] = {}
        """The paths of directories by their handles; None outside of `top`."""
        try:
            self._top = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._queue = _checked(library().fanotify_init(_GROUP, os.O_RDONLY))
            events = ctypes.c_uint64(_CHANGES | _ON_DIRECTORY)
            _checked(library().fanotify_mark(self._queue, _WHOLE, events, self._top, b"."))
            self._look_up(struct.pack("=Ii4x", 4, 1))  # refused without CAP_DAC_READ_SEARCH
            if _is_mounted_below(self._top):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the mark."""
        for handle in (self._top, self._queue):
            if handle >= 0:
                os.close(handle)

    def fileno(self) -> int:
        """Return the handle for poll(2)."""
        return self._queue

    def read(self, tree: TreeWatch) -> tuple[int, bool, bool]:
        """Note the changed paths in `tree`; return the same as its `read`."""
        count = 0
        for mask, handle, name in self._events():
            if mask & _OVERFLOW:
                return count, True, False
            above = self._path(handle)
            is_directory = bool(mask & _ON_DIRECTORY)
            if is_directory and mask & (_MOVED_FROM | _MOVED_TO):
                self._paths.clear()
            if above is not None:
                is_new = is_directory and bool(mask & (_CREATE | _MOVED_TO))
                path = above if name == b"." else join(above, name)
                count += tree.note(path, is_directory=is_directory, all_below=is_new)
        return count, False, False

    def _events(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the kinds, the handle of the directory and the name of events that wait."""
        for _ in range(_READS):
            try:
                events = os.read(self._queue, _ROOM)
            except BlockingIOError:
                return
            at = 0
            while at < len(events):
                size, _, _, head, mask, _, _ = _EVENT.unpack_from(events, at)
                handle = name = b""
                if head < size:  # not of an overflow
                    *_, handle_bytes = _RECORD.unpack_from(events, at + head)
                    begin = at + head + _RECORD.size - 4
                    end = begin + _KIND_AND_BYTES + handle_bytes
                    handle = events[begin:end]
                    name = events[end : at + size].partition(b"\0")[0]
                yield mask, handle, name
                at += size

    def _path(self, handle: bytes) -> bytes | None:
        """Return the path of a directory relative to `top`; None outside of it, or if gone."""
        if handle not in self._paths:
            if len(self._paths) >= _MOST_PATHS:
                self._paths.clear()
            self._paths[handle] = self._look_up(handle)
        return self._paths[handle]

    def _look_up(self, handle: bytes) -> bytes | None:
        directory = library().open_by_handle_at(self._top, handle, os.O_PATH | os.O_CLOEXEC)
        if directory < 0:
            error = last_error()
            if error.errno in (errno.ESTALE, errno.ENOENT, errno.EINVAL):
                return None
            raise error
        try:
            top, path = _path_of(self._top), _path_of(directory)
        finally:
            os.close(directory)
        if path == top:
            return b""
        top = top.rstrip(b"/") + b"/"
        return path.removeprefix(top) if path.startswith(top) else None


def _checked(result: int) -> int:
    """Return the result of a call; raises `OSError` by errno if it is negative."""
    if result < 0:
        raise last_error()
    return result


def _path_of(handle: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % handle)


def _is_mounted_below(top: int) -> bool:
    """True if the file system of a directory is mounted below it (proc_pid_mountinfo(5))."""
    device = os.fstat(top).st_dev
    number = f"{os.major(device)}:{os.minor(device)}".encode()
    above = re.sub(rb"[ \t\n\\]", lambda found: b"\\%03o" % found[0][0], _path_of(top))
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    fields = [line.split()[2:5] for line in lines]
    return any(
        each == number and point.startswith(above.rstrip(b"/") + b"/") and point != above
        for each, _, point in fields
    )
