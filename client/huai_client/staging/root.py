"""The staging area's own folder: opened, and locked by one run at a time."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from huai_client.tree.errors import StorageError, is_storage
from huai_client.tree.handles import DIRECTORY, closing
from huai_client.tree.reserved import open_own
from huai_native import _native
from huai_program.locking import open_lock, take_within, try_lock
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath, join, show


class StagingError(HuaiError):
    """The staging area cannot be used."""

    exit_code = ExitCode.DESTINATION


class StagingBusyError(HuaiError):
    """Another run, or an rsync that outlived one, still writes to the area."""

    exit_code = ExitCode.LOCKED


def open_root(root: Path) -> int:
    """Open `root` = DEST/NAME/NAME, with its last two directories made if absent, mode 0700.

    Raises `StagingError` if DEST is not a writable directory, `NotOursError` if other users may
    write to either of the two.
    """
    try:
        with closing(os.open(root.parent.parent, DIRECTORY)) as dest:
            path = join(os.fsencode(root.parent.name), os.fsencode(root.name))
            handle = open_own(dest, root.parent.parent, path)
            try:
                if os.fstat(handle).st_dev != os.fstat(dest).st_dev:
                    raise StagingError(
                        f"{root} is on another file system than the destination", hint="unmount it"
                    )
                os.fchmod(handle, 0o700)
            except BaseException:
                os.close(handle)
                raise
    except OSError as error:
        raise unusable(root, error) from error
    return handle


def unusable(root: Path, error: OSError) -> HuaiError:
    """Return the error of a staging area at `root` at which a system call failed."""
    code = error.errno or errno.EIO
    if is_storage(code):
        return StorageError(RelPath(os.fsencode(root)), code)
    hint = "the destination must be a directory that huai may write, not a symlink"
    return StagingError(f"{root}: {error.strerror}", hint=hint)


def opened_tree(root: int) -> AbstractContextManager[int]:
    """Hold a handle of the tree whose staging area is the handle `root`."""
    return closing(os.open("../..", DIRECTORY, dir_fd=root))


@contextmanager
def locked_file(handle: int, name: bytes, patience: float) -> Iterator[int]:
    """Hold the lock file `name`; yield its handle, which children may inherit and so keep locked.

    Raises `StagingBusyError` after `patience` seconds.
    Anything else with this name is removed first.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            _native.remove_all(handle, name)
    with closing(open_lock(name, folder=handle)) as lock:
        if take_within(lambda: try_lock(lock) or None, patience) is None:
            raise StagingBusyError(
                f"the staging area is in use (lock file {show(name)})",
                hint="wait for the other run or for its last rsync to end",
            )
        yield lock
