"""Finds other users who may change a file that root obeys, as sshd's StrictModes does.

Rule: whoever may write to a file, or to a folder above it, decides what is in it.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ALL_USERS = "4294967295"


class ForeignWriter(NamedTuple):
    """A file or folder that a user other than root may change."""

    path: Path
    uid: int
    mode: int

    @property
    def remedy(self) -> str:
        """The command that leaves it to root."""
        own = [f"chown root {self.path}"] if self.uid else []
        closed = [f"chmod go-w {self.path}"] if self.mode & _OTHERS else []
        return " && ".join(own + closed)


def is_root_of_machine() -> bool:
    """True for root, but not for that of a user namespace, who has one user's rights alone."""
    if os.geteuid() != 0:
        return False
    try:
        return Path("/proc/self/uid_map").read_text(encoding="ascii").split()[2:] == [_ALL_USERS]
    except OSError:
        return True


def find_foreign_writer(path: Path) -> ForeignWriter | None:
    """Return the first file or folder from / to `path` that another user than root may change.

    A folder with the sticky bit may be open to all, as /tmp is, if it is not `path` itself: no user
    can replace there what belongs to root.  A path that is missing is left out.
    """
    for place in _places(path):
        try:
            status = place.stat()
        except OSError:
            continue
        is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        is_open = status.st_mode & _OTHERS and not (is_sticky and place != path)
        if status.st_uid or is_open:
            return ForeignWriter(place, status.st_uid, stat.S_IMODE(status.st_mode))
    return None


def _places(path: Path) -> Iterator[Path]:
    """Paths from / to `path` as it is given, then those to the file that its symlinks lead to."""
    given, real = path.absolute(), path.resolve()
    for place in dict.fromkeys((given, real)):
        yield from reversed(place.parents)
        yield place
