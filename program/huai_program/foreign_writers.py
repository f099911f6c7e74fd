"""Finds other users who may change a file that root obeys, like sshd's StrictModes.

Rule: a user who may write to a file, or to a folder above it, controls its content.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ALL_USERS = "4294967295"


class ForeignWriter(Struct, frozen=True):
    """A file or folder that a user other than root may change."""

    path: Path
    uid: int
    mode: int

    @property
    def remedy(self) -> str:
        """The command that lets only root write, by chown and chmod."""
        own = [f"chown root {self.path}"] if self.uid else []
        closed = [f"chmod go-w {self.path}"] if self.mode & _OTHERS else []
        return " && ".join(own + closed)


def is_root_of_machine() -> bool:
    """Return True for root, except in a user namespace, where root has the rights of one user."""
    if os.geteuid() != 0:
        return False
    try:
        return Path("/proc/self/uid_map").read_text(encoding="ascii").split()[2:] == [_ALL_USERS]
    except OSError:
        return True


def find_foreign_writer(path: Path) -> ForeignWriter | None:
    """Return the first file or folder from / to `path` that a user other than root may change.

    None without one.  A sticky folder may be open to all, as /tmp is, if it is not `path` itself:
    no user can replace root's files there.  A missing path is skipped.
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
    """Yield the paths from / to `path` as spelt, then to the file to which symlinks lead."""
    spelt, real = path.absolute(), path.resolve()
    for place in dict.fromkeys((spelt, real)):
        yield from reversed(place.parents)
        yield place
