"""Listings to git objects (FORMAT.md, "Layout").

Pure and streaming: listings come in tree order, objects leave as soon as they are complete,
and what is held is one open directory per level and its unfinished manifest.  Every
decision follows from names and counts alone, so equal trees give equal ids.
"""

from collections.abc import Iterable
from itertools import groupby

from huai_schema.codec.blocks import Block, join_digests
from huai_schema.codec.escaping import escape
from huai_schema.codec.listing import Listing
from huai_schema.errors import FormatError
from huai_schema.git.objects import ObjectWriter, TreeItem, encode_tree
from huai_schema.layout.cutting import ManifestWriter, first_piece
from huai_schema.paths import basename, parent, show

SUBDIRECTORY = b"="
"""Prefix of the name of a directory that has a tree of its own."""
INLINE_ENTRIES = 128
"""A directory with at most this many entries, itself included, stands in its parent's manifest."""
SINGLE_LINES = 256
"""A manifest of at most this many lines is not cut."""


def build(listings: Iterable[Listing], writer: ObjectWriter) -> bytes:
    """Write the trees and manifests of a module; returns the id of its root tree."""
    builder = LayoutBuilder(writer)
    for listing in listings:
        builder.add(listing)
    return builder.finish()


class LayoutBuilder:
    """Takes listings one at a time, in tree order, the module's root first."""

    def __init__(self, writer: ObjectWriter) -> None:
        """Objects go to `writer` as soon as they are complete."""
        self._writer = writer
        self._open: list[_OpenDirectory] = []

    def add(self, listing: Listing) -> None:
        """The next directory; closes those that it does not lie in."""
        above = parent(listing.path)
        while len(self._open) > 1 and self._open[-1].path != above:
            self._close()
        if self._open:
            innermost = self._open[-1]
            fits = listing.path and innermost.path == above and innermost.admits(listing.path)
        else:
            fits = not listing.path
        if not fits:
            raise FormatError("listings are not in tree order", show(listing.path))
        self._open.append(_OpenDirectory(self._writer, listing))

    def finish(self) -> bytes:
        """Close everything; the root tree's id."""
        if not self._open:
            raise FormatError("a tree without a root directory")
        while len(self._open) > 1:
            self._close()
        return self._open.pop().write()

    def _close(self) -> None:
        """Hand the innermost directory to the one above it."""
        closed = self._open.pop()
        name = escape(basename(closed.path))
        inline = closed.inline_blocks(name)
        if inline is None:
            raw_name = SUBDIRECTORY + basename(closed.path)
            self._open[-1].children.append(TreeItem(raw_name, closed.write(), is_tree=True))
        else:
            self._open[-1].add_directory(name, inline)


class _OpenDirectory:
    """A directory whose subdirectories are still coming."""

    def __init__(self, writer: ObjectWriter, listing: Listing) -> None:
        self.path = listing.path
        self.children: list[TreeItem] = []
        self._writer = writer
        self._last = b""
        self._manifest: ManifestWriter | None = None  # where blocks go once it is cut
        self._blocks: list[Block] = []
        self._lines = 0
        self._collect([Block(b"", listing.attributes, listing.leaves, listing.digests)])

    def admits(self, path: bytes) -> bool:
        """Whether a subdirectory may come now: names grow."""
        name = basename(path)
        grows = name > self._last
        self._last = name
        return grows

    def add_directory(self, name: bytes, blocks: list[Block]) -> None:
        """A subdirectory that stands in this manifest."""
        if self._manifest is None:
            self._collect(blocks)
        else:
            self._manifest.add_directory(name, blocks)

    def inline_blocks(self, name: bytes) -> list[Block] | None:
        """This directory as part of its parent's manifest, if it is small enough."""
        if self._manifest or self.children or self._lines > INLINE_ENTRIES:
            return None
        return [
            block._replace(relative=name + b"/" + block.relative if block.relative else name)
            for block in self._blocks
        ]

    def write(self) -> bytes:
        """Write this directory as a tree of its own."""
        items = list(self.children)
        if self._manifest is not None:
            items.extend(self._manifest.finish())
        else:
            text = b"".join(block.encode() for block in self._blocks)
            digests = join_digests((block.files, block.digests) for block in self._blocks)
            items.extend(first_piece(text, digests, self._writer))
        return self._writer.write("tree", encode_tree(items))

    def _collect(self, blocks: list[Block]) -> None:
        self._blocks.extend(blocks)
        self._lines += sum(block.lines for block in blocks)
        if self._lines > SINGLE_LINES:
            self._manifest = self._start_cutting()
            self._blocks = []

    def _start_cutting(self) -> "ManifestWriter":
        """The manifest has grown too long for one piece: pass on what was collected."""
        manifest = ManifestWriter(self._writer)
        own, *rest = self._blocks
        manifest.add(b"", b"./\t%s\n" % own.attributes, [], 1)
        manifest.add_leaves(own.leaves, own.digests)
        for name, group in groupby(rest, key=lambda block: block.relative.partition(b"/")[0]):
            manifest.add_directory(name, list(group))
        return manifest
