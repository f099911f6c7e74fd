"""The records of an EROFS image, as bytes (Linux: fs/erofs/erofs_fs.h).

Pure.  Uses only what Linux 5.15 reads: extended inodes, flat and chunk-based data, a checksum of
the superblock, 4096-byte blocks.  All numbers are little endian.
"""

import struct
from functools import cache
from typing import NamedTuple

BLOCK = 4096
"""Bytes; the one size that all kernels with 4 KiB pages support."""
SLOT = 32
"""Inodes begin at multiples of it; an inode's number (nid) is its offset divided by it."""
ROOT_NID = 36
"""The root's inode comes right after the superblock."""
INODE_BYTES = 64
SUPERBLOCK_OFFSET = 1024

REGULAR, DIRECTORY, SYMLINK = 1, 2, 7
"""Types in a directory entry."""
MODE_BITS = {REGULAR: 0o100000, DIRECTORY: 0o040000, SYMLINK: 0o120000}

# Format of an extended inode, with where its data stands.
PLAIN = 1 | 0 << 1
"""In blocks of its own."""
INLINE = 1 | 2 << 1
"""The last, unfilled block right behind the inode, the others in blocks of its own."""
CHUNKS = 1 | 4 << 1
"""A list of chunks behind the inode."""

_MAGIC = 0xE0F5E1E2
_CHECKSUM, _MTIME = 1, 2
_CHUNKED_FILE = 4
_BLOCK_BITS = 12
_CHUNK_BITS = 31
"""The largest there is: chunks of BLOCK << 31 = 8 TiB."""
_CHUNK_BYTES = BLOCK << _CHUNK_BITS
_HOLE = b"\xff\xff\xff\xff"
_SUPERBLOCK = struct.Struct("<IIIBBHQQIIII16s16sIHHHB37x")
_INODE = struct.Struct("<HHHHQIIIIqII16x")
_DIRENT = struct.Struct("<QHBx")
DIRENT_BYTES = _DIRENT.size
_NANOSECONDS = 1_000_000_000
_POLYNOMIAL = 0x82F63B78

pack_dirent = _DIRENT.pack
"""(nid, offset of the name in its block, type)."""
pack_nid = struct.Struct("<Q").pack


class InodeAttributes(NamedTuple):
    """What all inodes have."""

    mode: int
    """With the type's bits (`MODE_BITS`)."""
    uid: int
    gid: int
    mtime: int
    """Nanoseconds since the epoch."""
    links: int = 1


def inode(layout: int, attributes: InodeAttributes, size: int, where: int) -> bytes:
    """64 bytes; `where` is the first block of the data, or the size of its chunks."""
    mode, uid, gid, mtime, links = attributes
    seconds, rest = divmod(mtime, _NANOSECONDS)
    return _INODE.pack(layout, 0, mode, 0, size, where, 0, uid, gid, seconds, rest, links)


def file_inode(attributes: InodeAttributes, size: int) -> bytes:
    """A regular file that is one hole, with its list of chunks: 4 bytes for each 8 TiB begun.

    Every size up to 2^63 - 1 can be expressed.
    """
    if not size:
        return inode(PLAIN, attributes, 0, 0)
    chunks = -(-size // _CHUNK_BYTES)
    return inode(CHUNKS, attributes, size, _CHUNK_BITS) + _HOLE * chunks


def superblock(first_block: bytes, blocks: int, inodes: int, uuid: bytes) -> bytes:
    """`first_block` with the superblock in its place; the checksum covers all behind it."""

    def packed(checksum: int) -> bytes:
        return _SUPERBLOCK.pack(
            *(_MAGIC, checksum, _CHECKSUM | _MTIME, _BLOCK_BITS, 0, ROOT_NID, inodes),
            *(0, 0),  # the time of the build: none, so that equal trees give equal images
            *(blocks, 0, 0, uuid, b"huai", _CHUNKED_FILE, 0, 0, 0, 0),
        )

    end = SUPERBLOCK_OFFSET + _SUPERBLOCK.size
    rest = first_block[end:]
    checksum = crc32c(packed(0) + rest)
    return first_block[:SUPERBLOCK_OFFSET] + packed(checksum) + rest


def block_count(first_block: bytes) -> int:
    """How many blocks the superblock says there are; 0 if it is not one."""
    if len(first_block) < BLOCK:
        return 0
    fields = _SUPERBLOCK.unpack_from(first_block, SUPERBLOCK_OFFSET)
    return int(fields[9]) if fields[0] == _MAGIC else 0


def crc32c(data: bytes) -> int:
    """The Castagnoli CRC from all ones, not inverted at the end: what the kernel compares."""
    table = _crc_table()
    value = 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for index in range(256):
        value = index
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)
