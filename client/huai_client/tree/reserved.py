"""The reserved name `.~tmp~`, below which huai has its own folders: staging area and trash.

Rules to keep: no path of the metadata leads there, and only this user can write to the directories
in its path.
"""

import errno
import os
import stat
from pathlib import Path
from typing import ClassVar

from huai_client.tree.handles import make_directory
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RESERVED, RelPath, join

STAGING_NAME = RESERVED
"""The folder that mirrors hide and exclude from rsync by convention; in no snapshot."""

STAGING = RelPath(STAGING_NAME + b"/huai")
"""The staging area, also for temporary names."""

_NO_DIRECTORY = (errno.ENOTDIR, errno.ELOOP)
_OTHERS_WRITE = 0o022


class NotOursError(HuaiError):
    """A folder of huai is not a directory, or another user can write to it."""

    exit_code: ClassVar[ExitCode] = ExitCode.DESTINATION


def open_own(dest: int, dest_path: Path, path: RelPath) -> int:
    """Return a handle of the directory `path` in `dest`; makes missing components (0700).

    `dest_path` is `dest` in messages.  Raises `NotOursError` if a component is not a directory, or
    another user can write to it: such permissions are not repaired, as others may have put anything
    there.
    """
    current, where = os.dup(dest), RelPath(b"")
    try:
        for name in path.split(b"/"):
            upper, where = current, join(where, name)
            current = _open(upper, name, dest_path / os.fsdecode(where))
            os.close(upper)
    except BaseException:
        os.close(current)
        raise
    return current


def _open(upper: int, name: bytes, path: Path) -> int:
    """Open a directory, made if missing.

    Raises `NotOursError` for a file, and for a directory that another user can write to.
    """
    try:
        handle = make_directory(upper, name)
    except OSError as error:
        if error.errno in _NO_DIRECTORY:
            raise NotOursError(
                f"{path} is not a directory",
                hint="huai needs a directory there for its own files: move it away",
            ) from error
        raise
    try:
        check_ours(os.fstat(handle), path)
    except NotOursError:
        os.close(handle)
        raise
    return handle


def check_ours(status: os.stat_result, path: Path) -> None:
    """Raise `NotOursError` if another user can write to `path`, whose status is `status`."""
    if status.st_uid != os.geteuid():
        raise NotOursError(
            f"{path} belongs to another user",
            hint="remove it with everything in it, then run again",
        )
    if stat.S_IMODE(status.st_mode) & _OTHERS_WRITE:
        raise NotOursError(
            f"other users can write to {path} (mode {stat.S_IMODE(status.st_mode):04o})",
            hint=f"if no other user put anything there: chmod go-w {path}; else remove it",
        )
