"""What a scan leaves out, by the C library's own fnmatch(3): the oracle of the native rules."""

import ctypes
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from huai_server.scan.exclude import ExcludePattern

_TEMPORARY = re.compile(rb"\..+\.[A-Za-z0-9]{6}\Z", re.DOTALL)
_RESERVED = b".~tmp~"
_NOT_OWNER = stat.S_IRWXG | stat.S_IRWXO
_FNM_PATHNAME = 1
_CTYPE_AND_COLLATE = 1 << 0 | 1 << 3


def is_reserved(name: bytes) -> bool:
    """Whether a name is rsync's and huai's own, whatever it is the name of."""
    return name.lower() == _RESERVED


def is_unfinished(name: bytes, mode: int) -> bool:
    """Whether a regular file is one of rsync's temporary files."""
    return not mode & _NOT_OWNER and _TEMPORARY.match(name) is not None


def left_out(
    patterns: tuple[ExcludePattern, ...], path: bytes, name: bytes, *, directory: bool
) -> bool:
    """Whether a pattern leaves out the entry `path`, whose last component is `name`.

    Call it inside `plain_locale`.
    """
    return any(
        _matches(pattern, path, name)
        for pattern in patterns
        if directory or not pattern.directories
    )


@contextmanager
def plain_locale() -> Iterator[None]:
    """This thread in the C locale, where a pattern's characters are bytes."""
    libc = _libc()
    before = libc.uselocale(_c_locale())
    try:
        yield
    finally:
        libc.uselocale(before)


def _matches(pattern: ExcludePattern, path: bytes, name: bytes) -> bool:
    fnmatch = _libc().fnmatch
    if pattern.anchored:
        return bool(fnmatch(pattern.glob, path, _FNM_PATHNAME) == 0)
    return bool(fnmatch(pattern.glob, name, 0) == 0)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.fnmatch.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    libc.newlocale.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p]
    libc.newlocale.restype = ctypes.c_void_p
    libc.uselocale.argtypes = [ctypes.c_void_p]
    libc.uselocale.restype = ctypes.c_void_p
    return libc


@cache
def _c_locale() -> int | None:
    locale: int | None = _libc().newlocale(_CTYPE_AND_COLLATE, b"C", None)
    return locale
