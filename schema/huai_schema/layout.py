"""Listings to git objects (FORMAT.md, "Layout").

Pure and streaming: listings come in tree order, objects leave as soon as they are complete,
and what is held is one open directory per level and its unfinished manifest.  Every
decision follows from names and counts alone, so equal trees give equal ids.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple, TypeAlias
from zlib import crc32

from huai_schema.errors import FormatError
from huai_schema.escaping import escape
from huai_schema.gitobjects import ObjectWriter, TreeItem, encode_tree
from huai_schema.limits import DIGEST_BYTES
from huai_schema.lines import count_files
from huai_schema.listing import Listing
from huai_schema.paths import basename, parent, show
from huai_schema.pieces import COLUMN_SUFFIX, piece_key, write_pieces

INLINE_ENTRIES = 128
"""A directory with at most this many entries, itself included, stands in its parent's manifest."""
SINGLE_LINES = 256
"""A manifest of at most this many lines is not cut."""
PIECE_LINES = 128
"""How long a piece is on average; a power of two."""
PIECE_LINES_MAX = 2048
PIECE_BYTES_MAX = 1 << 20
"""Where a piece is cut whatever its names say."""

MANIFEST, DIGESTS, PIECES, PIECE_DIGESTS = b"m", b"d", b"p", b"q"
SUBDIRECTORY = b"="
"""Prefix of the name of a directory that has a tree of its own."""


Column: TypeAlias = tuple[int, bytes]
"""How many regular files, and their digests; empty bytes: all absent."""


class Block(NamedTuple):
    """One directory inside a manifest."""

    relative: bytes
    """Escaped path from the manifest's own directory; empty for that directory."""
    attributes: bytes
    leaves: bytes
    digests: bytes

    @property
    def lines(self) -> int:
        """Entries, the directory included."""
        return 1 + self.leaves.count(b"\n")

    @property
    def files(self) -> int:
        """Regular files, which have a place in the digest column."""
        return count_files(self.leaves)

    def encode(self) -> bytes:
        """Its lines."""
        return b"%s/\t%s\n%s" % (self.relative or b".", self.attributes, self.leaves)


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
            self._open[-1].add_group(name, inline)


class _OpenDirectory:
    """A directory whose subdirectories are still coming."""

    def __init__(self, writer: ObjectWriter, listing: Listing) -> None:
        self.path = listing.path
        self.children: list[TreeItem] = []
        self._writer = writer
        self._last = b""
        self._manifest: _ManifestWriter | None = None  # where blocks go once it is cut
        self._blocks: list[Block] = []
        self._lines = 0
        self._collect([Block(b"", listing.attributes, listing.leaves, listing.digests)])

    def admits(self, path: bytes) -> bool:
        """Whether a subdirectory may come now: names grow."""
        name = basename(path)
        grows = name > self._last
        self._last = name
        return grows

    def add_group(self, name: bytes, blocks: list[Block]) -> None:
        """A subdirectory that stands in this manifest."""
        if self._manifest is None:
            self._collect(blocks)
        else:
            self._manifest.add_group(name, blocks)

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
            items.extend(_first_piece(text, digests, self._writer))
        return self._writer.write("tree", encode_tree(items))

    def _collect(self, blocks: list[Block]) -> None:
        self._blocks.extend(blocks)
        self._lines += sum(block.lines for block in blocks)
        if self._lines > SINGLE_LINES:
            self._manifest = self._start_cutting()
            self._blocks = []

    def _start_cutting(self) -> "_ManifestWriter":
        """The manifest has grown too long for one piece: pass on what was collected."""
        manifest = _ManifestWriter(self._writer)
        own, *rest = self._blocks
        manifest.add(b"", b"./\t%s\n" % own.attributes, [], 1)
        manifest.add_leaves(own.leaves, own.digests)
        for name, group in groupby(rest, key=lambda block: block.relative.partition(b"/")[0]):
            manifest.add_group(name, list(group))
        return manifest


class _ManifestWriter:
    """Cuts a manifest into pieces and writes each as soon as the next one begins."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer
        self._first: list[TreeItem] = []
        self._pieces: list[TreeItem] = []
        self._columns: list[TreeItem] = []
        self._keys: set[bytes] = set()
        self._key: bytes | None = None
        """Of the piece that is being collected; None for the first one."""
        self._texts: list[bytes] = []
        self._digests: list[Column] = []
        self._lines = self._bytes = 0

    def add(self, start: bytes, text: bytes, columns: list[Column], lines: int) -> None:
        """A unit that is never cut: one leaf, or one subdirectory with all below it."""
        if start and (crc32(start) % PIECE_LINES < lines or self._full(lines, len(text))):
            self._cut(start)
        self._append(text, columns, lines)

    def add_group(self, name: bytes, blocks: list[Block]) -> None:
        """A subdirectory with all below it; `name` is escaped."""
        text = b"".join(block.encode() for block in blocks)
        columns = [(block.files, block.digests) for block in blocks]
        self.add(name + b"/", text, columns, sum(block.lines for block in blocks))

    def add_leaves(self, leaves: bytes, digests: bytes) -> None:
        """Each line is a unit: the same as `add` for each, but fast for millions."""
        lines = _lines(leaves)
        cuts = [
            i for i, line in enumerate(lines) if not crc32(line[: line.index(b"\t")]) % PIECE_LINES
        ]
        first = offset = 0
        for end in (*cuts, len(lines)):
            text = b"".join(lines[first:end])
            files = count_files(text)
            column = digests[offset : offset + DIGEST_BYTES * files]
            offset += len(column)
            if self._full(end - first, len(text)):
                self._add_singly(lines[first:end], column)
            elif text:
                self._append(text, [(files, column)], end - first)
            if end < len(lines):
                self._cut(_name(lines[end]))
            first = end

    def finish(self) -> list[TreeItem]:
        """The first piece, and the trees that hold all others."""
        self._flush()
        items = self._first
        if self._pieces:
            pieces = write_pieces(self._pieces, self._writer)
            items.append(TreeItem(PIECES, pieces, is_tree=True))
        if self._columns:
            columns = write_pieces(self._columns, self._writer)
            items.append(TreeItem(PIECE_DIGESTS, columns, is_tree=True))
        return items

    def _add_singly(self, lines: list[bytes], digests: bytes) -> None:
        offset = 0
        for line in lines:
            if self._full(1, len(line)):
                self._cut(_name(line))
            files = count_files(line)
            column = digests[offset : offset + DIGEST_BYTES * files]
            offset += len(column)
            self._append(line, [(files, column)], 1)

    def _full(self, lines: int, size: int) -> bool:
        return self._lines + lines > PIECE_LINES_MAX or self._bytes + size > PIECE_BYTES_MAX

    def _append(self, text: bytes, columns: list[Column], lines: int) -> None:
        self._texts.append(text)
        self._digests += columns
        self._lines += lines
        self._bytes += len(text)

    def _cut(self, start: bytes) -> None:
        """End the piece here, unless two pieces would get the same name."""
        key = piece_key(start)
        if key in self._keys:
            return
        self._flush()
        self._keys.add(key)
        self._key = key

    def _flush(self) -> None:
        text, digests = b"".join(self._texts), join_digests(self._digests)
        if self._key is None:
            self._first = _first_piece(text, digests, self._writer)
        else:
            blob = self._writer.write("blob", text)
            self._pieces.append(TreeItem(self._key, blob, is_tree=False))
            if digests:
                column = self._writer.write("blob", digests)
                name = self._key + COLUMN_SUFFIX
                self._columns.append(TreeItem(name, column, is_tree=False))
        self._texts, self._digests = [], []
        self._lines = self._bytes = 0


def _first_piece(text: bytes, digests: bytes, writer: ObjectWriter) -> list[TreeItem]:
    items = [TreeItem(MANIFEST, writer.write("blob", text), is_tree=False)]
    if digests:
        items.append(TreeItem(DIGESTS, writer.write("blob", digests), is_tree=False))
    return items


def _name(line: bytes) -> bytes:
    return line[: line.index(b"\t")]


def _lines(leaves: bytes) -> list[bytes]:
    """Each with its newline; `bytes.splitlines` would split at a carriage return too."""
    return [line + b"\n" for line in leaves.split(b"\n")[:-1]]


def join_digests(columns: Iterable[Column]) -> bytes:
    """One column for several texts; empty if there is no digest at all."""
    joined = b"".join(digests or bytes(DIGEST_BYTES * files) for files, digests in columns)
    return joined if joined.strip(b"\0") else b""
