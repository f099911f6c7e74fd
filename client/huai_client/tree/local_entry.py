"""The entries of a downstream tree, in the form of the metadata.

Reads attributes, never content; changes nothing.  Rule: a path that cannot be read is reported
(`Unreadable`), never taken for absent.
"""

import stat
from os import stat_result
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


class Unreadable(NamedTuple):
    """A path that cannot be read, so that it and the paths below it are unknown."""

    path: RelPath
    reason: str
    directory: bool = False


def stat_entry(view: View, path: RelPath) -> LocalEntry | None:
    """Return the entry at `path`; None if it does not exist.

    Raises:
        PathError: `path` cannot be read.
    """
    status = view.stat(path)
    return None if status is None else _observed(view, path, status)


def _observed(view: View, path: RelPath, status: stat_result) -> LocalEntry:
    entry = _entry(view, path, status)
    numbers = (status.st_dev, status.st_ino, status.st_uid, status.st_gid)
    return LocalEntry(path, entry, *numbers)


def _entry(view: View, path: RelPath, status: stat_result) -> Entry | None:
    mode, mtime = stat.S_IMODE(status.st_mode), status.st_mtime_ns
    owner, group = view.names.user(status.st_uid), view.names.group(status.st_gid)
    if stat.S_ISREG(status.st_mode):
        return File(path, status.st_size, mtime, mode, owner, group)
    if stat.S_ISDIR(status.st_mode):
        return Directory(path, mtime, mode, owner, group)
    if stat.S_ISLNK(status.st_mode):
        return Symlink(path, view.target(path), mtime, mode, owner, group)
    return None
