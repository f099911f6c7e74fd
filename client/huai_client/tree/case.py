"""Detection of file systems on which names that differ by case only are the same.

There a file that was renamed from `Readme` to `README` is deleted together with its old name.  So
such a DEST is refused before the first change (`check_new_device`).  A single directory may fold
case as well, so each directory is checked before something in it is deleted.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree

from huai_client.tree.destination import DestinationError
from huai_client.tree.errors import PathError, StorageError, at
from huai_client.tree.handles import closing, handle_path
from huai_client.tree.reserved import STAGING_NAME, open_own
from huai_client.tree.view import View
from huai_schema.paths import ROOT, RelPath, basename, join, parent, show

_PROBES = RelPath(STAGING_NAME + b"/huai-probe")


@contextmanager
def probe_folder(handle: int, dest: Path) -> Iterator[Path]:
    """Make a folder next to the staging area, and remove it afterwards.

    `handle` is that of `dest`, whose times are restored.  The caller holds the module's lock.
    Raises `NotOursError` if another user can write to it, `OSError` if it cannot be made.
    """
    before = os.fstat(handle)
    try:
        with closing(open_own(handle, dest, _PROBES)) as folder:
            yield handle_path(folder)
    finally:
        rmtree(dest / os.fsdecode(_PROBES), ignore_errors=True)
        with suppress(OSError):  # it is not empty
            os.rmdir(STAGING_NAME, dir_fd=handle)
        os.utime(handle, ns=(before.st_atime_ns, before.st_mtime_ns))


_HINT = "keep the mirror on a file system that distinguishes case, such as ext4, xfs, btrfs or ZFS"


def folds_case(folder: Path) -> bool:
    """Return True if `folder`, in which a file is made, ignores case."""
    (folder / "Case").touch()
    return (folder / "case").exists()


def check_new_device(handle: int, dest: Path, device: int) -> int:
    """Return the device of DEST; raise `DestinationError` if it is not `device` and folds case.

    `handle` is that of DEST.  The test makes a folder in DEST, and removes it.  On a full disk that
    is not possible, and `device` is returned: a sync that only deletes has to work.
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
            f"{dest}: upper and lower case are the same: files would replace each other", hint=_HINT
        )
    return now


def check_removals(tree: View, paths: Iterable[RelPath]) -> None:
    """Raise `DestinationError` if a directory with a name to remove folds case.

    Tests one name of each directory.
    """
    distinguishing: set[RelPath] = set()
    for path in paths:
        folder = parent(path)
        other = basename(path).swapcase()
        if folder in distinguishing or other == basename(path):
            continue
        try:
            status = tree.stat(path)
            if status is None:
                continue
            folds = _is_same(tree, folder, other, status)
        except PathError:
            continue  # its deletion fails as well
        if folds:
            raise DestinationError(
                f"{show(folder)}: upper and lower case are the same there: deleting {show(path)} "
                "might delete another file; nothing was changed",
                hint=_HINT,
            )
        distinguishing.add(folder)


def _is_same(tree: View, folder: RelPath, name: bytes, status: os.stat_result) -> bool:
    """Return True if `name` is the entry of `status`, and not a hardlink of it."""
    other = tree.stat(join(folder, name))
    if other is None or not os.path.samestat(status, other):
        return False
    return all(name not in names for names in tree.listing(folder))
