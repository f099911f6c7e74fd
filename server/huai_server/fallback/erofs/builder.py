"""Building an image from listings: every entry once, a directory after all that it holds.

Inodes are written as entries come.  Memory holds one open directory per level, with its names, and
the hardlink groups.  The inode numbers of `.` and `..` are patched in when the directory and its
parent have been placed.
"""

from array import array
from collections.abc import Iterator
from heapq import merge

from huai_schema.codec.lines import decode_directory, decode_leaves
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.errors import ExitCode, FormatError, HuaiError
from huai_schema.paths import RelPath, basename, parent, show
from huai_server.fallback.erofs import ondisk
from huai_server.fallback.erofs.blocks import BlockWriter
from huai_server.fallback.erofs.children import Child, Children
from huai_server.fallback.erofs.directory import place_directory
from huai_server.fallback.erofs.ondisk import BLOCK, INODE_BYTES, MODE_BITS, SLOT, InodeAttributes
from huai_server.fallback.owners import OwnerNumbers

_MOST_BLOCKS = (1 << 32) - 1


class ImageLimitError(HuaiError):
    """A tree that no image can hold."""

    exit_code = ExitCode.FALLBACK


class _OpenDirectory:
    """A directory whose subdirectories still come."""

    __slots__ = ("entry", "leaves", "subdirectories", "upwards")

    def __init__(self, entry: Directory) -> None:
        self.entry = entry
        self.leaves = Children()
        self.subdirectories = Children()
        self.upwards = array("Q")
        """Where in the image its subdirectories name it."""

    def children(self) -> Iterator[Child]:
        """All its names in order; `.` and `..` lead to the root, until they are patched."""
        dots = (Child(name, ondisk.ROOT_NID, ondisk.DIRECTORY) for name in (b".", b".."))
        return merge(self.leaves, dots, self.subdirectories)


class ImageBuilder:
    """Takes listings in tree order, the root first."""

    def __init__(
        self, writer: BlockWriter, owners: OwnerNumbers, links: dict[RelPath, int]
    ) -> None:
        """`links` tells how many names each hardlink group has, by its first one."""
        self.entries = 0
        self._writer = writer
        self._owners = owners
        self._links = links
        self._leaders: dict[RelPath, int] = {}
        self._open: list[_OpenDirectory] = []
        self._inodes = 0

    def add(self, listing: Listing) -> None:
        """The next directory with its leaves; closes those that it does not lie in."""
        above = parent(listing.path)
        while len(self._open) > 1 and self._open[-1].entry.path != above:
            self._close()
        directory = _OpenDirectory(decode_directory(listing.path, listing.attributes))
        self._open.append(directory)
        self._add_leaves(directory, listing)

    def finish(self, uuid: bytes) -> int:
        """Write all that is still open; returns the number of blocks."""
        while self._open:
            self._close()
        self._writer.flush()
        blocks = self._writer.blocks
        if blocks > _MOST_BLOCKS:
            raise ImageLimitError(
                f"{self.entries} entries need an image of more than 16 TiB",
                hint='serve this module from another kind of attr tree (fallback.kind = "sparse")',
            )
        first = bytes(self._writer.first)
        self._writer.finish(ondisk.superblock(first, blocks, self._inodes, uuid))
        return blocks

    def _add_leaves(self, directory: _OpenDirectory, listing: Listing) -> None:
        add = directory.leaves.add
        start = len(listing.path) + 1 if listing.path else 0
        for entry in decode_leaves(listing.path, listing.leaves):
            if isinstance(entry, Symlink):
                add(entry.path[start:], self._symlink(entry), ondisk.SYMLINK)
            else:
                add(entry.path[start:], self._file(entry), ondisk.REGULAR)
        self.entries += len(directory.leaves)

    def _file(self, entry: File) -> int:
        if entry.link is not None:
            try:
                return self._leaders[entry.link]
            except KeyError:
                raise FormatError("a hardlink to no file", show(entry.path)) from None
        links = self._links.get(entry.path, 1)
        attributes = self._attributes(entry, ondisk.REGULAR, links)
        nid = self._put(ondisk.file_inode(attributes, entry.size))
        if links > 1:
            self._leaders[entry.path] = nid
        return nid

    def _symlink(self, entry: Symlink) -> int:
        attributes = self._attributes(entry, ondisk.SYMLINK)
        size = len(entry.target)
        if INODE_BYTES + size <= BLOCK:
            return self._put(ondisk.inode(ondisk.INLINE, attributes, size, 0) + entry.target)
        block = self._writer.put_blocks(entry.target)
        return self._put(ondisk.inode(ondisk.PLAIN, attributes, size, block))

    def _put(self, record: bytes) -> int:
        self._inodes += 1
        return self._writer.put_record(record) // SLOT

    def _close(self) -> None:
        """Write the innermost directory, and name it in the one above."""
        directory = self._open.pop()
        entry = directory.entry
        links = 2 + len(directory.subdirectories)
        attributes = self._attributes(entry, ondisk.DIRECTORY, links)
        root = not self._open
        placed = place_directory(self._writer, attributes, directory.children(), root=root)
        self.entries += 1
        self._inodes += 1
        number = ondisk.pack_nid(placed.nid)
        for where in (placed.own, *directory.upwards):
            self._writer.patch(where, number)
        if not root:
            self._open[-1].upwards.append(placed.above)
            self._open[-1].subdirectories.add(basename(entry.path), placed.nid, ondisk.DIRECTORY)

    def _attributes(self, entry: Entry, kind: int, links: int = 1) -> InodeAttributes:
        uid, gid = self._owners.pair(entry.owner, entry.group)
        return InodeAttributes(MODE_BITS[kind] | entry.mode, uid, gid, entry.mtime, links)
