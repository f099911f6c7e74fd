"""The entries of a module: paths with their attributes.

Tuples, because a snapshot has millions of them.  Compare entries of one type only:
a tuple does not know its class.
"""

from typing import NamedTuple, TypeAlias

from huai_schema.paths import RelPath, path_as_text, show

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
SYMLINK_MODE = 0o777
ROOT_OWNER = b"root"


class File(NamedTuple):
    """A regular file."""

    path: RelPath
    size: int
    """Bytes."""
    mtime: int
    """Nanoseconds since the epoch."""
    mode: int = FILE_MODE
    """Permission bits with setuid, setgid and sticky (0o7777)."""
    owner: bytes = ROOT_OWNER
    """The user's name, or `#ID` if the upstream has no name for the id."""
    group: bytes = ROOT_OWNER
    link: RelPath | None = None
    """The first path of the hardlink group; None for that first path itself."""
    digest: bytes | None = None
    """The BLAKE3-256 of the content, 32 bytes; None if it was not computed."""


class Directory(NamedTuple):
    """A directory, such as `ROOT`; its attributes are as those of a `File`."""

    path: RelPath
    mtime: int
    mode: int = DIRECTORY_MODE
    owner: bytes = ROOT_OWNER
    group: bytes = ROOT_OWNER


class Symlink(NamedTuple):
    """A symbolic link; its target is copied verbatim and never followed."""

    path: RelPath
    target: bytes
    mtime: int
    mode: int = SYMLINK_MODE
    """Permission bits: always 0o777 on Linux, recorded for other systems."""
    owner: bytes = ROOT_OWNER
    group: bytes = ROOT_OWNER


Entry: TypeAlias = File | Directory | Symlink


def entry_values(entry: Entry | None) -> dict[str, object] | None:
    """Return type and attributes, without the path, for JSON; None without an entry.

    The mode is a number, a digest in hex.
    """
    if entry is None:
        return None
    values: dict[str, object] = {
        "type": kind_name(entry),
        "mtime_ns": entry.mtime,
        "mode": entry.mode,
        "owner": show(entry.owner),
        "group": show(entry.group),
    }
    if isinstance(entry, File):
        values["size"] = entry.size
        values["link"] = None if entry.link is None else path_as_text(entry.link)
        values["digest"] = None if entry.digest is None else entry.digest.hex()
    elif isinstance(entry, Symlink):
        values["target"] = show(entry.target)
    return values


def kind_name(entry: Entry) -> str:
    """Return `file`, `directory` or `symlink`."""
    if isinstance(entry, Directory):
        return "directory"
    return "symlink" if isinstance(entry, Symlink) else "file"
