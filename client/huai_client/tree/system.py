"""System calls that Python has no function for.

Rule: every call has a fallback or an `OSError`; nothing here knows what a tree is.
"""

import ctypes
import errno
import os
from functools import cache

_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def sync_file_system(handle: int) -> None:
    """Write everything of the file system that holds `handle` to disk: syncfs(2)."""
    if _libc().syncfs(ctypes.c_int(handle)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def rename_to_nothing(source: int, old: bytes, target: int, new: bytes) -> None:
    """Rename, but never over something: `FileExistsError` then (renameat2(2)).

    Where kernel, C library or file system know no such flag: `rename_after_look`.
    """
    if not rename_noreplace(source, old, target, new):
        rename_after_look(source, old, target, new)


def rename_noreplace(source: int, old: bytes, target: int, new: bytes) -> bool:
    """The same by the kernel alone; False, and nothing happened, where the flag is not known."""
    return _renameat2(source, old, target, new, _RENAME_NOREPLACE)


def exchange(source: int, old: bytes, target: int, new: bytes) -> bool:
    """Let two names change places at once; False where that is not known (renameat2(2))."""
    return _renameat2(source, old, target, new, _RENAME_EXCHANGE)


def rename_after_look(source: int, old: bytes, target: int, new: bytes) -> None:
    """The same with a gap between look and rename."""
    try:
        os.stat(new, dir_fd=target, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _renameat2(source: int, old: bytes, target: int, new: bytes, flags: int) -> bool:
    """False where the call is not known; nothing happened then."""
    try:
        call = _libc().renameat2
    except AttributeError:
        return False
    if call(ctypes.c_int(source), old, ctypes.c_int(target), new, ctypes.c_uint(flags)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code))
