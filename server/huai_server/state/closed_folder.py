"""The folders of private modules, which only their owner and one group may enter.

Closing the folder protects later files in it as well.  A folder whose module becomes public is not
opened again.
"""

import os
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o007
_PERMISSIONS = 0o7777


def close_folder(folder: Path, like: Path) -> None:
    """Remove other users' rights to `folder`; if they had any, give it the group of `like`.

    The group stays if this user may not set it.
    """
    if is_open(folder):
        with suppress(PermissionError):  # not a group of this user: keep the present one
            os.chown(folder, -1, like.stat().st_gid)
        folder.chmod(folder.stat().st_mode & _PERMISSIONS & ~_OTHERS)


def is_open(folder: Path) -> bool:
    """Return True if any user may enter `folder` or read its names."""
    return bool(folder.stat().st_mode & _OTHERS)
