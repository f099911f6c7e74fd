"""Reads the entries of a downstream tree, in the form that metadata have.

Reads attributes, never content; changes nothing.  Rule: a path that cannot be read is reported
(`Unreadable`), never taken for absent.
"""

import stat
from os import stat_result
from typing import NamedTuple

from huai_client.modes import Kept
from huai_client.tree import View
from huai_client.tree.owners import Owners
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath


class LocalEntry(NamedTuple):
    """One path of the local tree."""

    path: RelPath
    entry: Entry | None
    """Without `link` and `digest`; None for a device, socket or fifo."""
    device: int
    inode: int
    nlinks: int
    uid: int
    gid: int


class Unreadable(NamedTuple):
    """A path that could not be read; nothing is known about it and the paths below it."""

    path: RelPath
    reason: str
    directory: bool = False


def stat_entry(view: View, path: RelPath) -> LocalEntry | None:
    """The entry at `path`; None: nothing stands there, or a path above is no directory.

    Raises:
        PathError: `path` cannot be read.
    """
    status = view.stat(path)
    return None if status is None else _observed(view, path, status)


def _observed(view: View, path: RelPath, status: stat_result) -> LocalEntry:
    entry = _entry(view, path, status)
    numbers = (status.st_dev, status.st_ino, status.st_nlink, status.st_uid, status.st_gid)
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


def differences(
    observed: LocalEntry,
    wanted: Entry,
    *,
    owners: Owners | None,
    leader: LocalEntry | None = None,
) -> frozenset[str]:
    """The names of the attributes in which `observed` differs from `wanted`.

    Any of "type", "size", "mtime", "mode", "owner", "group", "target", "link".  Owners are compared
    by number, and only with `owners` (None: they cannot be set); a name that is unknown on this
    machine never differs.  `leader` is the entry at `wanted.link`.
    """
    entry = observed.entry
    if type(entry) is not type(wanted) or entry is None:
        return frozenset({"type"})
    unequal = {
        "mtime": entry.mtime != wanted.mtime,
        # Linux gives every symlink the mode 777.
        "mode": entry.mode != wanted.mode
        and not isinstance(wanted, Symlink)
        and not isinstance(wanted.mode, Kept),
        "owner": owners is not None and owners.uid(wanted.owner, observed.uid) != observed.uid,
        "group": owners is not None and owners.gid(wanted.group, observed.gid) != observed.gid,
    }
    if isinstance(entry, File) and isinstance(wanted, File):
        unequal["size"] = entry.size != wanted.size
        unequal["link"] = wanted.link is not None and not same_inode(observed, leader)
    elif isinstance(entry, Symlink) and isinstance(wanted, Symlink):
        unequal["target"] = entry.target != wanted.target
    return frozenset(name for name, differs in unequal.items() if differs)


def differences_here(view: View, observed: LocalEntry, wanted: Entry) -> frozenset[str]:
    """As `differences`, with the owners and the leader that `view` has.

    Raises:
        PathError: `wanted.link` cannot be read.
    """
    link = wanted.link if isinstance(wanted, File) else None
    leader = None if link is None else stat_entry(view, link)
    return differences(observed, wanted, owners=view.owners, leader=leader)


def same_inode(one: LocalEntry, other: LocalEntry | None) -> bool:
    """Whether both are names of one inode."""
    return other is not None and (one.device, one.inode) == (other.device, other.inode)
