r"""What a scan leaves out beyond rsync's own leftovers.

A pattern is a glob of fnmatch(3) (`*`, `?`, `[...]`, `\` escapes), matched byte by byte whatever
the locale.  Without a slash it matches the last component of a path; with one in front or
inside it matches the whole path from the root, and `*` and `?` do not match a slash.  A slash at
its end restricts it to directories.  A directory left out is left out with all below it.

Always left out: directories named `.~tmp~` (rsync --delay-updates) and rsync's temporary files
(`.NAME.XXXXXX`).  An XXXXXX of six lower-case letters or of six digits is taken for a real name
(`.config.backup`, `.log.202401`); one temporary name in two hundred looks so too, and is listed.

The native scanner holds the same rules in c/filter.c.
"""

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from huai_schema.errors import ExitCode
from huai_schema.paths import show
from huai_server.scan.types import ScanError

_TEMPORARY = re.compile(rb"\..+\.(?![a-z]{6}\Z)(?![0-9]{6}\Z)[A-Za-z0-9]{6}\Z", re.DOTALL)
_DELAYED = b".~tmp~"
_FNM_PATHNAME = 1
_CTYPE_AND_COLLATE = 1 << 0 | 1 << 3


class BadPatternError(ScanError):
    """A configured pattern that cannot match anything."""

    exit_code = ExitCode.CONFIG


class Pattern(NamedTuple):
    """A parsed pattern."""

    glob: bytes
    anchored: bool
    """Match the whole path, not the last component."""
    directories: bool
    """Match directories only."""


def parse(text: bytes) -> Pattern:
    """The pattern that `text` spells."""
    glob = text.removesuffix(b"/")
    anchored = b"/" in glob
    directories = glob != text
    glob = glob.removeprefix(b"/")
    if not glob or b"\0" in glob:
        raise BadPatternError(
            f"not a pattern that can match: {show(text)!r}",
            hint="give a glob such as *.tmp, lost+found/ or /incoming",
        )
    return Pattern(glob, anchored, directories)


def left_out(patterns: tuple[Pattern, ...], path: bytes, name: bytes, *, directory: bool) -> bool:
    """Whether the entry `path`, whose last component is `name`, is left out.

    Call it inside `plain_locale`.
    """
    if name == _DELAYED if directory else _TEMPORARY.match(name):
        return True
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


def _matches(pattern: Pattern, path: bytes, name: bytes) -> bool:
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
