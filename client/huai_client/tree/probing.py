"""A folder in DEST for tests of its file system."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree

from huai_client.tree.handles import handle_path
from huai_client.tree.reserved import STAGING_NAME, open_own
from huai_schema.paths import RelPath

_PROBES = RelPath(STAGING_NAME + b"/huai-probe")


@contextmanager
def probe_folder(handle: int, dest: Path) -> Iterator[Path]:
    """Make a folder next to the staging area, and remove it afterwards.

    `handle` is that of `dest`, whose times are restored.  The caller holds the module's lock.

    Raises:
        NotOursError: another user can write to the folder, or it is not a directory.
        OSError: the folder cannot be made.
    """
    before = os.fstat(handle)
    try:
        folder = open_own(handle, dest, _PROBES)
        try:
            yield handle_path(folder)
        finally:
            os.close(folder)
    finally:
        rmtree(dest / os.fsdecode(_PROBES), ignore_errors=True)
        with suppress(OSError):  # it is not empty
            os.rmdir(STAGING_NAME, dir_fd=handle)
        os.utime(handle, ns=(before.st_atime_ns, before.st_mtime_ns))
