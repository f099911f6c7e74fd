"""What lies under the reserved name: huai's own, and nobody else's to write to.

Content waits there after it was verified, and what was deleted is kept there.  Rule to keep: no
path of the metadata leads there, and the directories on the way belong to us alone.
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
"""The folder that mirrors hide and rsync leaves out by custom; never part of a snapshot."""

STAGING = RelPath(STAGING_NAME + b"/huai")
"""Where content is staged, and temporary names are made."""

_NO_DIRECTORY = (errno.ENOTDIR, errno.ELOOP)
_OTHERS_WRITE = 0o022


class NotOursError(HuaiError):
    """Somebody else may change what is put aside, or something else has its name."""

    exit_code: ClassVar[ExitCode] = ExitCode.DESTINATION


def is_reserved(path: bytes) -> bool:
    """Whether any component is the reserved name, in whatever case."""
    return RESERVED in path.lower() and RESERVED in path.lower().split(b"/")


def open_own(dest: int, place: Path, path: RelPath) -> int:
    """A handle of the directory `path` in `dest`, each component made (0700) if it is absent.

    `place` is what messages call `dest`.  Nothing is repaired here: who could write to a directory
    may have put anything into it.

    Raises:
        NotOursError: one is no directory, or anybody but us may write to it.
    """
    current, where = os.dup(dest), RelPath(b"")
    try:
        for name in path.split(b"/"):
            upper, where = current, join(where, name)
            current = _open(upper, name, place / os.fsdecode(where))
            os.close(upper)
    except BaseException:
        os.close(current)
        raise
    return current


def _open(upper: int, name: bytes, place: Path) -> int:
    try:
        handle = make_directory(upper, name)
    except OSError as error:
        if error.errno in _NO_DIRECTORY:
            raise NotOursError(
                f"{place} is not a directory",
                hint="huai stages content there, and no mirror names it: move it away",
            ) from error
        raise
    try:
        check_ours(os.fstat(handle), place)
    except NotOursError:
        os.close(handle)
        raise
    return handle


def check_ours(status: os.stat_result, place: Path) -> None:
    """Raise `NotOursError` if anybody but us may write to what is at `place`."""
    if status.st_uid != os.geteuid():
        raise NotOursError(
            f"{place} belongs to another user", hint="remove it with all it holds, then run again"
        )
    if stat.S_IMODE(status.st_mode) & _OTHERS_WRITE:
        raise NotOursError(
            f"{place} may be written by others (mode {stat.S_IMODE(status.st_mode):04o})",
            hint="if nobody put anything there: chmod go-w; else remove it with all it holds",
        )
