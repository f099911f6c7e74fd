"""The entries of a local tree, as an oracle for what the engine compares."""

import os
import stat
from typing import NamedTuple

from huai_client.tree import View
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath


class LocalEntry(NamedTuple):
    """A path of the local tree."""

    path: RelPath
    entry: Entry | None
    """The entry without `link` and `digest`; None for a device, socket or fifo."""
    device: int
    inode: int
    uid: int
    gid: int


def stat_entry(view: View, path: RelPath) -> LocalEntry | None:
    """Return the entry at `path`; None if it does not exist.

    Raises `PathError` if it cannot be read.
    """
    status = view.stat(path)
    if status is None:
        return None
    entry = _entry(view, path, status)
    return LocalEntry(path, entry, status.st_dev, status.st_ino, status.st_uid, status.st_gid)


def _entry(view: View, path: RelPath, status: os.stat_result) -> Entry | None:
    """Return the entry of a stat; None for a device, socket or FIFO."""
    mode, mtime = stat.S_IMODE(status.st_mode), status.st_mtime_ns
    owner, group = view.names.user(status.st_uid), view.names.group(status.st_gid)
    if stat.S_ISREG(status.st_mode):
        return File(path, status.st_size, mtime, mode, owner, group)
    if stat.S_ISDIR(status.st_mode):
        return Directory(path, mtime, mode, owner, group)
    if stat.S_ISLNK(status.st_mode):
        return Symlink(path, view.target(path), mtime, mode, owner, group)
    return None
