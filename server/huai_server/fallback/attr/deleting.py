"""Deleting a tree of any depth: each folder is first moved up beside the others.

So neither the depth of the tree nor the length of its paths matters, and never more than one
folder is open.
"""

import errno
import os
from pathlib import Path


def delete_tree(top: Path) -> None:
    """Delete the folder `top` with all below it; nothing happens if it is not there.

    A run that is cut leaves folders beside `top`, whose names begin with `gone.`; they go with
    the next `delete_tree` in the same parent.
    """
    waiting = sorted(top.parent.glob("gone.*"))
    number = 1 + max((int(each.suffix[1:]) for each in waiting), default=0)
    if top.is_dir() and not top.is_symlink():
        waiting.append(top.rename(top.with_name(f"gone.{number}")))
    while waiting:
        folder = waiting.pop()
        # What an attr tree lists as closed to its owner is closed to whoever deletes it, too.
        folder.chmod(0o700)
        for name in os.listdir(folder):
            if not _unlinked(folder / name):
                number += 1
                waiting.append((folder / name).rename(top.with_name(f"gone.{number}")))
        folder.rmdir()


def _unlinked(path: Path) -> bool:
    try:
        path.unlink()
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EPERM):
            return False
        raise
    return True
