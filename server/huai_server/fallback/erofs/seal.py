"""The last block of an image file, behind the file system: which tree it is of, and a checksum.

An image that lies on a disk is looked at again before it is mounted: the kernel itself checks
no more than the superblock.
"""

import os
import re
from pathlib import Path

from blake3 import blake3

from huai_schema.errors import ExitCode, HuaiError
from huai_server.fallback.erofs.ondisk import BLOCK
from huai_server.storage import storing

_CHUNK = 1 << 20
_SEAL = re.compile(rb"huai attr image 1\ntree ([0-9a-f]{40})\nblake3 ([0-9a-f]{64})\n\0+")


class DamagedImageError(HuaiError):
    """An image that is not, or no longer, what was built."""

    exit_code = ExitCode.FALLBACK

    def __init__(self, image: Path, reason: str) -> None:
        """Say of which file."""
        super().__init__(f"{image}: {reason}", hint="delete the image and build it again")


def write_seal(handle: int, blocks: int, tree: bytes) -> None:
    """Close an image of `blocks` blocks that describes the git tree `tree`."""
    size = blocks * BLOCK
    digest = _digest(handle, size, tree)
    seal = b"huai attr image 1\ntree %s\nblake3 %s\n" % (tree.hex().encode(), digest)
    os.pwrite(handle, seal.ljust(BLOCK, b"\0"), size)


def verify(image: Path, tree: bytes) -> None:
    """Read all of an image; `DamagedImageError` unless it is whole and of the git tree `tree`."""
    with storing(image):
        handle = os.open(image, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            size = os.fstat(handle).st_size - BLOCK
            seal = _SEAL.fullmatch(os.pread(handle, BLOCK, size)) if size > 0 else None
            if seal is None:
                raise DamagedImageError(image, "no image, or one that was cut")
            if bytes.fromhex(seal[1].decode()) != tree:
                raise DamagedImageError(image, "an image of another tree")
            if _digest(handle, size, tree) != seal[2]:
                raise DamagedImageError(image, "its checksum is wrong")
        finally:
            os.close(handle)


def _digest(handle: int, size: int, tree: bytes) -> bytes:
    hasher = blake3(tree)
    for at in range(0, size, _CHUNK):
        hasher.update(os.pread(handle, min(_CHUNK, size - at), at))
    return hasher.hexdigest().encode()
