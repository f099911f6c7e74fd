"""Placing the entries of a directory: in blocks of their own, the last one behind the inode."""

from collections.abc import Iterable
from typing import NamedTuple

from huai_server.fallback.erofs import ondisk
from huai_server.fallback.erofs.blocks import BlockWriter
from huai_server.fallback.erofs.children import Child, DirectoryBlock, directory_blocks
from huai_server.fallback.erofs.ondisk import BLOCK, INODE_BYTES, ROOT_NID, SLOT, InodeAttributes


class Placed(NamedTuple):
    """A directory in its image; places are offsets."""

    nid: int
    own: int
    """Where the number of `.` stands."""
    above: int
    """Where the number of `..` stands."""


def place_directory(
    writer: BlockWriter, attributes: InodeAttributes, children: Iterable[Child], *, root: bool
) -> Placed:
    """Write a directory with `children`, all its names in order, `.` and `..` among them."""
    data = _Data(writer)
    blocks = directory_blocks(children)
    last = next(blocks)
    for block in blocks:
        data.add(last)
        last = block
    size = data.count * BLOCK + len(last.data)
    begin = ROOT_NID * SLOT if root else 0
    inline = begin + INODE_BYTES + len(last.data) <= BLOCK
    if not inline:
        data.add(last)
    layout = ondisk.INLINE if inline else ondisk.PLAIN
    record = ondisk.inode(layout, attributes, size, data.first)
    record += last.data if inline else b""
    where = writer.put_root(record) if root else writer.put_record(record)
    if inline:
        data.note(last, where + INODE_BYTES)
    return Placed(where // SLOT, data.own, data.above)


class _Data:
    """The blocks of one directory; they are placed together, so they are consecutive."""

    def __init__(self, writer: BlockWriter) -> None:
        self._writer = writer
        self.first = self.count = self.own = self.above = 0

    def add(self, block: DirectoryBlock) -> None:
        number = self._writer.put_blocks(block.data)
        self.first = self.first or number
        self.count += 1
        self.note(block, number * BLOCK)

    def note(self, block: DirectoryBlock, where: int) -> None:
        """Remember where `.` and `..` stand, if they are in this block."""
        if block.own is not None:
            self.own = where + block.own
        if block.above is not None:
            self.above = where + block.above
