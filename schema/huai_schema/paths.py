"""Relative paths inside a module, as raw bytes.

A `RelPath` is safe: no empty, `.`, `..` or reserved component, no NUL, not absolute, within the
limits.  `ROOT` (the empty path) is the module's own directory.

Two orders: `path_order` compares components, so a directory comes right before its content;
`tree_order` is that of FORMAT.md: a directory, its leaves by name, then its subdirectories.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NewType

from huai_schema.errors import FormatError
from huai_schema.limits import NAME_BYTES, PATH_BYTES

RelPath = NewType("RelPath", bytes)

ROOT = RelPath(b"")

RESERVED = b".~tmp~"
"""The reserved name, in any case, of staging folders: rsync's for --delay-updates, and ours."""


def show(path: bytes) -> str:
    """Return a path for people, `.` for `ROOT`; escapes undecodable bytes, control characters."""
    return escape_controls(path.decode("utf-8", "backslashreplace")) or "."


def escape_controls(text: str) -> str:
    """Return `text` with control characters and line ends escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def path_as_text(path: bytes) -> str:
    """Return a path for programs, `.` for `ROOT`: UTF-8, other bytes as `surrogateescape` does."""
    return path.decode("utf-8", "surrogateescape") or "."


def check_name(name: bytes) -> bytes:
    """Return `name` if it is a valid component; `FormatError` if it is reserved or not valid."""
    if name.lower() == RESERVED:
        raise FormatError(f"the name {name.decode()!r} is reserved, in every directory")
    if not name or name in (b".", b".."):
        raise FormatError(f"{name.decode() or 'an empty name'!r} cannot name an entry")
    if len(name) > NAME_BYTES:
        raise FormatError(f"a name of {len(name)} bytes exceeds {NAME_BYTES}")
    if b"\0" in name or b"/" in name:
        raise FormatError(f"a name holds NUL or '/': {show(name[:80])}")
    return name


def rel_path(raw: bytes) -> RelPath:
    """Return `raw` as a `RelPath`; raises `FormatError` if it is too long or not safe."""
    if len(raw) > PATH_BYTES:
        raise FormatError(f"a path of {len(raw)} bytes exceeds {PATH_BYTES}")
    if raw:
        for name in raw.split(b"/"):
            check_name(name)
    return RelPath(raw)


def join(directory: bytes, name: bytes) -> RelPath:
    """Return the path of `name` in `directory`, both already checked."""
    return RelPath(directory + b"/" + name if directory else name)


def parent(path: bytes) -> RelPath:
    """Return the directory of `path`; `ROOT` for a top-level name."""
    return RelPath(path.rpartition(b"/")[0])


def basename(path: bytes) -> bytes:
    """Return the last component of a path; empty for `ROOT`."""
    return path.rpartition(b"/")[2]


def relative(path: bytes, directory: bytes) -> bytes:
    """Return `path` relative to `directory`, which is above it."""
    return path[len(directory) + 1 :] if directory else path


def path_order(path: bytes) -> bytes:
    """Return a key that sorts paths by components: NUL, which no name has, sorts first."""
    return path.replace(b"/", b"\0")


def tree_order(path: bytes, *, directory: bool) -> bytes:
    r"""Return a key that sorts entries in tree order; a directory's key begins all keys below it.

    Each component ends with \0, and begins with \0 for a leaf, \1 for a directory.
    """
    if not path:
        return b""
    above, _, name = path.rpartition(b"/")
    mark = b"\1" if directory else b"\0"
    return _directory_key(above) + mark + name + b"\0"


@lru_cache(maxsize=64)
def _directory_key(folder: bytes) -> bytes:
    """Return the sort key of a directory; cached, because siblings follow each other."""
    if not folder:
        return b""
    return b"".join(b"\1" + name + b"\0" for name in folder.split(b"/"))


def is_within(path: bytes, top: bytes) -> bool:
    """True if `path` is `top`, or below it."""
    return not top or path == top or path.startswith(top + b"/")


def ancestors(path: bytes) -> list[RelPath]:
    """Return the directories above `path`, nearest first, `ROOT` last; none for `ROOT`."""
    directories: list[RelPath] = []
    while path:
        path = parent(path)
        directories.append(RelPath(path))
    return directories


def after_moves(path: RelPath, moves: Mapping[RelPath, RelPath]) -> RelPath:
    """Return the path to which `moves` (new by old path) of directories above it bring `path`.

    Only the nearest moved directory counts; without one, `path` is returned.
    """
    old = next((above for above in ancestors(path) if above in moves), None)
    return path if old is None else RelPath(moves[old] + path[len(old) :])
