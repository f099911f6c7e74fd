"""Setting owner, mode and times of one inode: in this order, and only those that differ.

Works on O_PATH handles, which open any inode without a right to read it and without
side effects on devices and fifos.
"""

import os
import stat

from huai_client.modes import Kept
from huai_client.tree.handles import handle_path
from huai_client.tree.owners import Owners
from huai_schema.entries import Directory, File, Symlink


def set_owner(handle: int, wanted: File | Directory, owners: Owners | None) -> None:
    """Set owner and group; without `owners`, and for names unknown here, they stay."""
    if owners is None:
        return
    status = os.fstat(handle)
    uid = owners.uid(wanted.owner, status.st_uid)
    gid = owners.gid(wanted.group, status.st_gid)
    if (uid, gid) != (status.st_uid, status.st_gid):
        os.chown(handle_path(handle), uid, gid)


def set_mode(handle: int, mode: int) -> None:
    """Set all twelve mode bits; a `Kept` mode changes nothing.

    To be called after `set_owner`: chown(2) clears setuid and setgid.
    """
    if isinstance(mode, Kept):
        return
    if stat.S_IMODE(os.fstat(handle).st_mode) != mode:
        handle_path(handle).chmod(mode)


def set_mtime(handle: int, mtime: int) -> None:
    """Set the modification time, in nanoseconds; the access time stays."""
    status = os.fstat(handle)
    if status.st_mtime_ns != mtime:
        os.utime(handle_path(handle), ns=(status.st_atime_ns, mtime))


def set_all(handle: int, wanted: File | Directory, owners: Owners | None) -> None:
    """Set owner, mode and modification time of `wanted`."""
    set_owner(handle, wanted, owners)
    set_mode(handle, wanted.mode)
    set_mtime(handle, wanted.mtime)


def set_symlink(folder: int, name: bytes, wanted: Symlink, owners: Owners | None) -> None:
    """Set owner and time of the symlink itself; on Linux symlinks have no mode of their own."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if owners is not None:
        uid = owners.uid(wanted.owner, status.st_uid)
        gid = owners.gid(wanted.group, status.st_gid)
        if (uid, gid) != (status.st_uid, status.st_gid):
            os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)
    if status.st_mtime_ns != wanted.mtime:
        times = (status.st_atime_ns, wanted.mtime)
        os.utime(name, ns=times, dir_fd=folder, follow_symlinks=False)
