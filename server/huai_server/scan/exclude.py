r"""What a scan leaves out.

A pattern is a glob of fnmatch(3) (`*`, `?`, `[...]`, `\` escapes), matched byte by byte whatever
the locale.  Without a slash it matches the last component of a path; with one in front or
inside it matches the whole path from the root, and `*` and `?` do not match a slash.  A slash at
its end restricts it to directories.  A directory is left out with all below it.

Always left out, with a remark:

- whatever is named `.~tmp~`, in upper or lower case: rsync (--delay-updates) and huai stage
  there, so a downstream could not publish it;
- rsync's temporary files.  For a file NAME rsync writes `.NAME.XXXXXX` (mkstemp(3)) with the mode
  of NAME but no rights for group and others; when it is complete, rsync sets the mode, then renames
  it.  So a name like this is a temporary file if group and others have no rights, whether rsync is
  writing it or was killed; with any other mode it is a file like `.checksums.sha256`.  A scan
  between the two steps takes the file for a complete one of that name, but then the renaming
  changes the directory, and the scan reads it again.

The native scanner holds the same rules in c/filter.c.
"""

import ctypes
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from huai_schema.errors import ExitCode
from huai_schema.paths import show
from huai_server.scan.types import ScanError

_TEMPORARY = re.compile(rb"\..+\.[A-Za-z0-9]{6}\Z", re.DOTALL)
_RESERVED = b".~tmp~"
_NOT_OWNER = stat.S_IRWXG | stat.S_IRWXO
_FNM_PATHNAME = 1
_CTYPE_AND_COLLATE = 1 << 0 | 1 << 3


class BadPatternError(ScanError):
    """A configured pattern that cannot match anything."""

    exit_code = ExitCode.CONFIG


class ExcludePattern(NamedTuple):
    """A parsed pattern."""

    glob: bytes
    anchored: bool
    """Match the whole path, not the last component."""
    directories: bool
    """Match directories only."""


def parse_exclude(text: bytes) -> ExcludePattern:
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
    return ExcludePattern(glob, anchored, directories)


def is_reserved(name: bytes) -> bool:
    """Whether `name` is that of a staging folder, of rsync or huai."""
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
    """Put this thread into the C locale, in which a character is a byte."""
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
