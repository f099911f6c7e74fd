"""What is read here of an EROFS image (Linux: fs/erofs/erofs_fs.h); the engine writes it."""

import struct

BLOCK = 4096
"""Bytes; the one size that all kernels with 4 KiB pages support."""
_SUPERBLOCK_OFFSET = 1024
_MAGIC = 0xE0F5E1E2
_SUPERBLOCK = struct.Struct("<I32xI")
"""Magic and number of blocks."""


def block_count(first_block: bytes) -> int:
    """How many blocks the superblock says there are; 0 if it is not one."""
    if len(first_block) < BLOCK:
        return 0
    magic, blocks = _SUPERBLOCK.unpack_from(first_block, _SUPERBLOCK_OFFSET)
    return int(blocks) if magic == _MAGIC else 0
