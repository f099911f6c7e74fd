"""One path of a module with its attributes: the values everything else passes around.

Tuples, because a snapshot makes millions of them.  Compare entries of one type only:
a tuple does not know its class.
"""

from typing import NamedTuple, TypeAlias

from huai_schema.paths import RelPath

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
    """The user's name, or `#ID` where the upstream knows no name."""
    group: bytes = ROOT_OWNER
    link: RelPath | None = None
    """The first path of its hardlink group; None for that first path itself."""
    digest: bytes | None = None
    """BLAKE3-256 of the content, 32 bytes; None if it was not computed."""


class Directory(NamedTuple):
    """A directory; `ROOT` is one too."""

    path: RelPath
    mtime: int
    mode: int = DIRECTORY_MODE
    owner: bytes = ROOT_OWNER
    group: bytes = ROOT_OWNER


class Symlink(NamedTuple):
    """A symbolic link; its target is carried as it is and never followed."""

    path: RelPath
    target: bytes
    mtime: int
    mode: int = SYMLINK_MODE
    """Always 0o777 on Linux; carried for systems where it is not."""
    owner: bytes = ROOT_OWNER
    group: bytes = ROOT_OWNER


Entry: TypeAlias = File | Directory | Symlink
