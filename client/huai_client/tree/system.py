"""System calls for which Python has no function.

Rule: where the kernel lacks a call, there is a fallback or an `OSError`.
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
    """Write all changes to the file system of `handle` to disk: syncfs(2)."""
    if _libc().syncfs(ctypes.c_int(handle)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def rename_to_nothing(source: int, old: bytes, target: int, new: bytes) -> None:
    """Rename; raises `FileExistsError` if `new` exists: renameat2(2) with RENAME_NOREPLACE.

    Where kernel, C library or file system lack this flag, calls `rename_after_look`.
    """
    if not rename_noreplace(source, old, target, new):
        rename_after_look(source, old, target, new)


def rename_noreplace(source: int, old: bytes, target: int, new: bytes) -> bool:
    """As `rename_to_nothing`, without a fallback: False, and nothing done, without the flag."""
    return _renameat2(source, old, target, new, _RENAME_NOREPLACE)


def exchange(source: int, old: bytes, target: int, new: bytes) -> bool:
    """Exchange two names in one step (renameat2(2)); False, and nothing done, without the flag."""
    return _renameat2(source, old, target, new, _RENAME_EXCHANGE)


def rename_after_look(source: int, old: bytes, target: int, new: bytes) -> None:
    """As `rename_to_nothing`, in two steps: a name that appears between them is replaced."""
    try:
        os.stat(new, dir_fd=target, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _renameat2(source: int, old: bytes, target: int, new: bytes, flags: int) -> bool:
    """Whether it was done; False, and nothing done, where call or flag are not known."""
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
