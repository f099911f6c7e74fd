"""File systems to which two names that differ by case alone are one.

There a file that was renamed from `Readme` to `README` is deleted together with its old name.  So
such a DEST is refused before the first change (`check_new_device`).  Only a directory of it may
fold case as well, so each directory is looked at before something in it is deleted.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from huai_client.tree.destination import DestinationError
from huai_client.tree.errors import PathError, StorageError, at
from huai_client.tree.probing import probe_folder
from huai_schema.paths import ROOT, RelPath, basename, join, parent, show

_HINT = "keep the mirror on a file system that tells them apart, such as ext4, xfs, btrfs or ZFS"


class Names(Protocol):
    """A tree whose names are looked at."""

    def stat(self, path: RelPath) -> os.stat_result | None:
        """The status of `path`, symlinks not followed; None: nothing stands there."""

    def listing(self, path: RelPath) -> tuple[list[bytes], list[bytes]]:
        """The names in a directory: leaves, then subdirectories."""


def folds_case(folder: Path) -> bool:
    """True if two names that differ by case are one in `folder`, in which a file is made."""
    (folder / "Case").touch()
    return (folder / "case").exists()


def check_new_device(handle: int, dest: Path, device: int) -> int:
    """Return the device of DEST; raise `DestinationError` if it is not `device` and folds case.

    `handle` is that of DEST.  On a full disk nothing can be tried out, and `device` is returned: a
    sync that only deletes has to be possible.
    """
    try:
        with at(ROOT):
            now = os.fstat(handle).st_dev
            if now == device:
                return now
            with probe_folder(handle, dest) as folder:
                folds = folds_case(folder)
    except StorageError:
        return device
    if folds:
        raise DestinationError(
            f"{dest}: upper and lower case are the same: files would replace each other",
            hint=_HINT,
        )
    return now


def check_removals(tree: Names, paths: Iterable[RelPath]) -> None:
    """Raise `DestinationError` if a directory of which a name is to be removed folds case.

    Looks at one name of each directory.
    """
    told_apart: set[RelPath] = set()
    for path in paths:
        folder = parent(path)
        other = basename(path).swapcase()
        if folder in told_apart or other == basename(path):
            continue
        try:
            there = tree.stat(path)
            if there is None:
                continue
            folds = _is_same(tree, folder, other, there)
        except PathError:
            continue  # its deletion fails as well
        if folds:
            raise DestinationError(
                f"{show(folder)}: upper and lower case are the same there: deleting {show(path)} "
                "might delete another file; nothing was changed",
                hint=_HINT,
            )
        told_apart.add(folder)


def _is_same(tree: Names, folder: RelPath, name: bytes, there: os.stat_result) -> bool:
    """True if `name` leads to what is `there`, and is not a hardlink of it."""
    same = tree.stat(join(folder, name))
    if same is None or not os.path.samestat(there, same):
        return False
    return all(name not in names for names in tree.listing(folder))
