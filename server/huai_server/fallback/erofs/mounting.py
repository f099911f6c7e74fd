"""Mounting and unmounting of images, by system calls.

From Linux 6.12 on the image file is mounted directly if its file system allows that (ext4, XFS and
Btrfs do, tmpfs does not); otherwise through a loop device.  A mount belongs to the mount namespace
of the process that made it.
"""

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huai_schema.errors import ExitCode, HuaiError
from huai_server.fallback.erofs.image import BLOCK
from huai_server.fallback.libc import call

_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_FLAGS = _READ_ONLY | _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS
_DETACH, _NO_FOLLOW = 2, 8
_HINTS = {
    errno.EPERM: "mounting needs root (CAP_SYS_ADMIN), which containers lack as a rule",
    errno.ENODEV: "this kernel has no EROFS: load it (modprobe erofs), or use another kind",
    errno.EINVAL: "see the kernel's log; an image needs Linux 5.15 or newer",
    errno.ENOMEM: "the kernel is short of memory",
}
_OTHER = 'see the kernel\'s log; fallback.kind = "sparse" needs no mount'
_CONTROL = "/dev/loop-control"
_GET_FREE, _CONFIGURE = 0x4C82, 0x4C0A
_LOOP_READ_ONLY, _AUTOCLEAR = 1, 4
_CONFIG = struct.Struct("=II 52xI 160x 16x 64x")
"""The struct loop_config (Linux: include/uapi/linux/loop.h) with file, block size, and the flags of
struct loop_info64."""
_ATTEMPTS = 16


class MountError(HuaiError):
    """An image cannot be mounted or unmounted."""

    exit_code = ExitCode.FALLBACK


def mount(image: Path, folder: Path) -> None:
    """Mount `image`, which this process wrote, on `folder`, read-only; raises `MountError`."""
    try:
        try:
            _mount(image, folder)
        except OSError as error:
            if error.errno != errno.ENOTBLK:
                raise
            with loop_device(image) as device:
                _mount(device, folder)
    except OSError as error:
        raise _refusal(f"cannot mount {image} on {folder}", error) from error
    if not folder.is_mount():
        raise MountError(
            f"{image} was mounted on {folder}, but it is not visible there",
            hint="another program hides or changes mounts; use another kind of attr tree",
        )


def unmount(folder: Path) -> None:
    """Unmount `folder`, if it is a mount point; processes with open files there keep them.

    The image may be deleted at once.  Raises `MountError`.
    """
    # No check before, because a mount can change between the check and the call.
    try:
        call("umount2", os.fsencode(folder), _DETACH | _NO_FOLLOW)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise _refusal(f"cannot unmount {folder}", error) from error


def _mount(source: Path, folder: Path) -> None:
    """Mount an image, or a loop device with one, read-only; raises `OSError`."""
    names = os.fsencode(source), os.fsencode(folder), b"erofs"
    call("mount", *names, ctypes.c_ulong(_FLAGS), None)


def _refusal(message: str, error: OSError) -> MountError:
    return MountError(f"{message}: {error.strerror}", hint=_HINTS.get(error.errno or 0, _OTHER))


@contextmanager
def loop_device(image: Path) -> Iterator[Path]:
    """Attach `image` to a read-only loop device, and yield the path of the device.

    The kernel detaches it when it is neither open nor mounted any more.  Raises `MountError`.
    """
    handle = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
    try:
        device, name = _attach(handle)
    except OSError as error:
        where = error.filename or _CONTROL
        raise MountError(
            f"cannot mount {image}: no loop device: {where}: {error.strerror}",
            hint="load the kernel's loop module and make /dev/loop* visible here, or keep the "
            "image on a file system from which Linux 6.12 or newer mounts it (ext4, XFS, Btrfs)",
        ) from error
    finally:
        os.close(handle)
    try:
        yield name
    finally:
        os.close(device)


def _attach(image: int) -> tuple[int, Path]:
    """Attach the open file `image` to a free loop device; return the device's handle and path.

    Raises `OSError`.
    """
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_ATTEMPTS):
            name = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
            device = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                # Direct I/O would bypass the pages of the image that `resident` keeps.
                flags = _LOOP_READ_ONLY | _AUTOCLEAR
                fcntl.ioctl(device, _CONFIGURE, _CONFIG.pack(image, BLOCK, flags))
            except OSError as error:
                os.close(device)
                # Another process took the device.
                if error.errno != errno.EBUSY:
                    raise
            else:
                return device, name
    finally:
        os.close(control)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), _CONTROL)
