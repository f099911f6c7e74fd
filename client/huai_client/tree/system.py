"""System calls that Python has no function for.

Rule: every call has a fallback or an `OSError`; nothing here knows what a tree is.
"""

import ctypes
import errno
import os
from functools import cache

_RENAME_NOREPLACE = 1
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
    if _rename_no_replace(source, old, target, new):
        return
    rename_after_look(source, old, target, new)


def rename_after_look(source: int, old: bytes, target: int, new: bytes) -> None:
    """The same with a gap between look and rename."""
    try:
        os.stat(new, dir_fd=target, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _rename_no_replace(source: int, old: bytes, target: int, new: bytes) -> bool:
    """False where the call is not known; nothing happened then."""
    try:
        call = _libc().renameat2
    except AttributeError:
        return False
    flag = ctypes.c_uint(_RENAME_NOREPLACE)
    if call(ctypes.c_int(source), old, ctypes.c_int(target), new, flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code))
