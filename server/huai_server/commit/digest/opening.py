"""Opening a file that a scan has seen, below a root, without following a symlink.

`O_PATH` comes first, which opens no device and no fifo: whoever may write in the tree cannot make a
commit that runs as root open one of these, or a file elsewhere.  The caller checks what the
descriptor stands for; only then the file is opened for reading, through that descriptor.
"""

import ctypes
import errno
import os
import struct

_OPENAT2 = 437
"""The number of the system call, the same on every architecture."""
_NO_SYMLINKS, _BENEATH = 0x04, 0x08
_HOW = struct.Struct("<QQQ")
_ATTEMPTS = 16
"""How often openat2(2) is repeated: a rename elsewhere or a signal may interrupt it."""
_TOO_OLD = (errno.ENOSYS, errno.EPERM)
"""What openat2(2) says where it is missing; EPERM: a filter of system calls does not know it."""
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_STATX_BTIME = 0x800
_EMPTY_PATH = 0x1000
_STATX_BYTES = 256
_BIRTH = struct.Struct("<qI")
_BIRTH_OFFSET = 80

_libc = ctypes.CDLL(None, use_errno=True)


def open_place(root: int, path: bytes) -> int:
    """An `O_PATH` descriptor of what is at `path`; of a symlink itself, never of its target."""
    how = _HOW.pack(_PLACE, 0, _NO_SYMLINKS | _BENEATH)
    error = errno.EAGAIN
    for _ in range(_ATTEMPTS):
        found: int = _libc.syscall(_OPENAT2, root, path, how, ctypes.c_size_t(len(how)))
        if found >= 0:
            return found
        error = ctypes.get_errno()
        if error not in (errno.EAGAIN, errno.EINTR):
            break
    if error in _TOO_OLD:
        return _walk(root, path)
    raise OSError(error, os.strerror(error))


def open_reading(place: int) -> int:
    """The file of an `O_PATH` descriptor, opened for reading."""
    return os.open(f"/proc/self/fd/{place}", _READ)


def birth_time(place: int) -> int | None:
    """When the file was made, in nanoseconds; None where the file system does not say.

    Inode numbers are used again; with the time of birth a number stands for one file only.
    """
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    if not hasattr(_libc, "statx"):  # glibc 2.28
        return None
    if _libc.statx(place, b"", _EMPTY_PATH, _STATX_BTIME, answer) != 0:
        return None
    if not int.from_bytes(answer.raw[:4], "little") & _STATX_BTIME:
        return None
    seconds, rest = _BIRTH.unpack_from(answer, _BIRTH_OFFSET)
    return int(seconds * 1_000_000_000 + rest)


def _walk(root: int, path: bytes) -> int:
    """The same for kernels before 5.6: one component after the other."""
    here = os.dup(root)
    try:
        *above, name = path.split(b"/")
        for component in above:
            below = os.open(component, _PLACE | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        return os.open(name, _PLACE, dir_fd=here)
    finally:
        os.close(here)
