"""The opening of DEST, and the check of its free space.

Only here a tree is opened by an absolute path.  The directories above DEST may be symlinks, DEST
itself may not.  A missing DEST is not created: it is more often an unmounted disk than a first run.
"""

import os
import stat
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import ClassVar

from huai_client.tree.errors import at
from huai_client.tree.handles import DIRECTORY, HANDLES
from huai_program.configuration import user_name
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath

_SECTOR = 512
"""The unit of `st_blocks`, on every file system."""


class DestinationError(HuaiError):
    """DEST cannot be used."""

    exit_code: ClassVar[ExitCode] = ExitCode.DESTINATION


class MissingDestinationError(DestinationError):
    """DEST does not exist."""


def open_destination(dest: Path, *, write: bool) -> int:
    """Return a handle of DEST, which the caller closes.

    Raises `DestinationError` for a missing or relative path, anything but a directory, a symlink to
    one, one that cannot be opened or, with `write`, one that is read-only or of another user.
    """
    if not dest.is_absolute():
        raise DestinationError(
            f"{str(dest)!r} is not an absolute path",
            hint="write the whole path in client.toml, beginning with /; ~ is not expanded",
        )
    check_type(dest)
    try:
        handle = os.open(dest, DIRECTORY)
    except PermissionError:
        raise DestinationError(
            f"{dest} cannot be read by {user_name(os.geteuid())}",
            hint=f"give it to that user: chown -R {user_name(os.geteuid())} {dest}",
        ) from None
    except OSError as error:
        raise DestinationError(
            f"{dest} cannot be opened: {error.strerror}",
            hint="check its permissions and its disk, then run again",
        ) from error
    try:
        if write:
            _check_writable(dest, handle)
    except HuaiError:
        os.close(handle)
        raise
    return handle


def check_type(dest: Path) -> None:
    """Raise `MissingDestinationError`, or `DestinationError` if DEST is not a directory."""
    try:
        mode = dest.lstat().st_mode
    except FileNotFoundError:
        raise MissingDestinationError(
            f"{dest} does not exist",
            hint=f"check that its disk is mounted; for a new mirror: mkdir -p {dest}",
        ) from None
    except OSError as error:
        raise DestinationError(
            f"{dest} cannot be reached: {error.strerror}",
            hint="check the permissions of the folders above it",
        ) from error
    if stat.S_ISLNK(mode):
        raise DestinationError(
            f"{dest} is a symlink", hint=f"configure the directory itself: {os.path.realpath(dest)}"
        )
    if not stat.S_ISDIR(mode):
        raise DestinationError(
            f"{dest} is not a directory", hint="name a directory as dest in client.toml"
        )


def _check_writable(dest: Path, handle: int) -> None:
    """Raise `DestinationError` unless this process may change DEST."""
    if not HANDLES.is_dir():
        raise DestinationError(
            f"{HANDLES} is missing, which huai needs to write",
            hint="mount /proc: mount -t proc proc /proc",
        )
    status = os.fstat(handle)
    me = os.geteuid()
    if me not in (0, status.st_uid):
        raise DestinationError(
            f"{dest} belongs to {user_name(status.st_uid)}, and huai runs as {user_name(me)}",
            hint=f"run as {user_name(status.st_uid)}, or: chown -R {user_name(me)} {dest}",
        )
    with at(RelPath(os.fsencode(dest))):
        flags = os.fstatvfs(handle).f_flag
    if flags & os.ST_RDONLY:
        raise DestinationError(
            f"{dest} is on a file system that is mounted read-only",
            hint=f"mount -o remount,rw {_mount_point(dest)}",
        )


def _mount_point(dest: Path) -> Path:
    real = dest.resolve()
    return next(path for path in (real, *real.parents) if path.is_mount())


class NoSpaceError(HuaiError):
    """The destination has no room for the new content."""

    exit_code = ExitCode.NO_SPACE

    def __init__(self, message: str, *, bytes_short: int = 0, inodes_short: int = 0) -> None:
        """Make an error; the numbers are the missing bytes and inodes."""
        super().__init__(message, hint="free some space, or mirror less with a filter")
        self.bytes_short = bytes_short
        self.inodes_short = inodes_short


_STEP = 10_000
"""Sizes that are held at a time."""
DIRECTORY_BYTES = 4096
"""The size of a new directory on most file systems."""


def check_space(dest: Path, sizes: Iterable[int]) -> None:
    """Raise `NoSpaceError` unless DEST has room for new entries of these sizes (bytes).

    Each takes an inode as well, if the file system counts them.
    """
    needed = count = 0
    rest = iter(sizes)
    while step := [*islice(rest, _STEP)]:
        needed += sum(step)
        count += len(step)
    with at(RelPath(os.fsencode(dest))):
        free = os.statvfs(dest)
    room = free.f_bavail * free.f_frsize
    if needed > room:
        raise NoSpaceError(
            f"{dest}: {needed:,} bytes are needed and {room:,} are free; the tree was not changed",
            bytes_short=needed - room,
        )
    if free.f_files and count > free.f_favail:
        raise NoSpaceError(
            f"{dest}: {count:,} inodes are needed and {free.f_favail:,} are free; "
            "the tree was not changed",
            inodes_short=count - free.f_favail,
        )


def bytes_on_disk(status: os.stat_result) -> int:
    """Return the bytes that a file takes on the disk, without holes."""
    return status.st_blocks * _SECTOR
