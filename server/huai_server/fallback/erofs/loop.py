"""A loop device for an image (Linux: include/uapi/linux/loop.h).

The kernel takes the device apart by itself once nothing has it open or mounted any more.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huai_server.fallback.erofs.ondisk import BLOCK

_CONTROL = "/dev/loop-control"
_GET_FREE, _CONFIGURE = 0x4C82, 0x4C0A
_READ_ONLY, _AUTOCLEAR = 1, 4
_CONFIG = struct.Struct("=II 52xI 160x 16x 64x")
"""struct loop_config: file, block size, and of struct loop_info64 just the flags."""
_ATTEMPTS = 16


class LoopError(Exception):
    """No loop device can be set up."""

    def __init__(self, reason: str, hint: str) -> None:
        """`reason` and `hint` are for people."""
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@contextmanager
def loop_device(image: Path) -> Iterator[Path]:
    """A read-only block device with the content of `image`, kept while it is in use."""
    handle = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
    try:
        device, name = _attach(handle)
    except OSError as error:
        where = error.filename or _CONTROL
        raise LoopError(
            f"no loop device: {where}: {error.strerror}",
            "load the kernel's loop module and let /dev/loop* be seen here, or keep the image on "
            "a file system that Linux 6.12 or newer mounts it from (ext4, XFS, Btrfs)",
        ) from error
    finally:
        os.close(handle)
    try:
        yield name
    finally:
        os.close(device)


def _attach(image: int) -> tuple[int, Path]:
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_ATTEMPTS):
            name = Path(f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}")
            device = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                # Not direct: that reads past the pages of the image that `resident` keeps.
                flags = _READ_ONLY | _AUTOCLEAR
                fcntl.ioctl(device, _CONFIGURE, _CONFIG.pack(image, BLOCK, flags))
            except OSError as error:
                os.close(device)
                # Somebody else was quicker.
                if error.errno != errno.EBUSY:
                    raise
            else:
                return device, name
    finally:
        os.close(control)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), _CONTROL)
