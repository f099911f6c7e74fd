"""Deleting a tree of any depth, by first moving each folder up next to the top.

So the depth of the tree and the length of its paths are not limited, and one folder is open at a
time.
"""

import errno
import os
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def delete_tree(top: Path) -> None:
    """Delete the folder `top` with all below it, if it exists.

    An interrupted run leaves folders next to `top`, whose names begin with `gone.`; the next
    `delete_tree` in the same parent deletes them.
    """
    waiting = [each for each in sorted(top.parent.glob("gone.*")) if each != top]
    number = 1 + max((int(each.suffix[1:]) for each in waiting), default=0)
    if top.is_dir() and not top.is_symlink():
        waiting.append(top.rename(top.with_name(f"gone.{number}")))
    while waiting:
        folder = waiting.pop()
        # The mode of a folder in an attr tree may deny its owner.
        folder.chmod(0o700)
        for name in _delete_files(folder):
            number += 1
            (folder / name).chmod(0o700)  # or it could not be moved
            waiting.append((folder / name).rename(top.with_name(f"gone.{number}")))
        folder.rmdir()


def _delete_files(folder: Path) -> list[str]:
    """Delete all names that are not folders; returns the names of the folders."""
    handle = os.open(folder, _DIRECTORY)
    try:
        return [name for name in os.listdir(handle) if not _unlink(handle, name)]
    finally:
        os.close(handle)


def _unlink(folder: int, name: str) -> bool:
    """Delete a name; False if it is a folder."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EPERM):
            return False
        raise
    return True
