"""The places of records and blocks in an image, which is written once, from front to back.

Records (inodes and what follows them) fill metadata blocks; a block that is not full yet is
kept in memory, so that data blocks can be written behind it in the meantime.  Block 0, with
the superblock and the root's inode, is written last.
"""

import os

from huai_server.fallback.erofs.ondisk import BLOCK, ROOT_NID, SLOT

_PADDING = [bytes(-length % SLOT) for length in range(SLOT)]


class BlockWriter:
    """Gives every record and every data block its place."""

    def __init__(self, handle: int) -> None:
        """Write to an open, empty file."""
        self.first = bytearray(BLOCK)
        """Block 0."""
        self._handle = handle
        self._blocks = 1
        self._records = bytearray()
        self._at = 0
        """Where the metadata block that is being filled will stand."""

    @property
    def blocks(self) -> int:
        """How many there are so far."""
        return self._blocks

    def put_record(self, record: bytes) -> int:
        """Place a record at a multiple of `SLOT`; returns its offset in the image.

        It crosses no block, as the kernel wants it of an inode with what follows inline; a
        record larger than a block begins one.
        """
        if len(record) > BLOCK:
            return self.put_blocks(record) * BLOCK
        records = self._records
        if not self._at or len(records) + len(record) > BLOCK:
            self.flush()
            self._at = self._reserve(1) * BLOCK
        where = self._at + len(records)
        records += record
        records += _PADDING[len(record) % SLOT]
        return where

    def put_root(self, record: bytes) -> int:
        """Place the root's record; returns its offset in the image."""
        where = ROOT_NID * SLOT
        self.first[where : where + len(record)] = record
        return where

    def put_blocks(self, data: bytes) -> int:
        """Place data in blocks of its own; returns the number of the first."""
        first = self._reserve(-(-len(data) // BLOCK))
        self._write(data + bytes(-len(data) % BLOCK), first * BLOCK)
        return first

    def patch(self, where: int, data: bytes) -> None:
        """Replace bytes of what was placed."""
        offset = where - self._at
        if where < BLOCK:
            self.first[where : where + len(data)] = data
        elif 0 <= offset < len(self._records):
            self._records[offset : offset + len(data)] = data
        else:
            self._write(data, where)

    def flush(self) -> None:
        """Write the metadata block that is being filled; the next record begins another."""
        if self._at:
            self._write(bytes(self._records.ljust(BLOCK, b"\0")), self._at)
            self._records.clear()
            self._at = 0

    def finish(self, first: bytes) -> None:
        """Write block 0, as it is to be."""
        self.flush()
        self._write(first, 0)

    def _reserve(self, count: int) -> int:
        first = self._blocks
        self._blocks += count
        return first

    def _write(self, data: bytes, where: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._handle, view, where)
            view, where = view[written:], where + written
