"""Reflinks: files that share blocks, where the file system can do it (btrfs, xfs)."""

import errno
import fcntl
import os
import struct
import tempfile
from pathlib import Path

_FICLONE = 0x4004_9409
_FIEMAP = 0xC020_660B
_SYNC = 1
_SHARED = 0x2000
_HEAD = struct.Struct("=QQIIII")
_EXTENT = struct.Struct("=QQQQQI12x")
_LACKS = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL}


def shares_blocks(folder: Path) -> bool:
    """Return true if two files in `folder` can share blocks."""
    with tempfile.TemporaryFile(dir=folder) as source, tempfile.TemporaryFile(dir=folder) as target:
        source.write(bytes(1 << 16))
        source.flush()
        try:
            fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
        except OSError as error:
            if error.errno not in _LACKS:
                raise
            return False
        return True


def is_shared(path: Path) -> bool:
    """Return true if another file shares the first blocks of this one."""
    handle = os.open(path, os.O_RDONLY)
    try:
        room = bytearray(_HEAD.size + _EXTENT.size)
        _HEAD.pack_into(room, 0, 0, 1, _SYNC, 0, 1, 0)
        fcntl.ioctl(handle, _FIEMAP, room)
    except OSError as error:
        if error.errno not in _LACKS:
            raise
        return False
    finally:
        os.close(handle)
    return bool(_EXTENT.unpack_from(room, _HEAD.size)[-1] & _SHARED)
