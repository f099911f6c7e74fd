"""Cutting a long manifest into pieces (FORMAT.md, "Cutting").

Pure and streaming: a piece leaves as soon as the next one begins.  Where cuts fall follows
from names and lengths alone.
"""

from zlib import crc32

from huai_schema.codec.blocks import Block, Column, join_digests
from huai_schema.codec.lines import count_files
from huai_schema.git.objects import ObjectWriter, TreeItem
from huai_schema.layout.pieces import COLUMN_SUFFIX, piece_key, write_pieces
from huai_schema.limits import DIGEST_BYTES

MANIFEST, DIGESTS, PIECES, PIECE_DIGESTS = b"m", b"d", b"p", b"q"
"""Items of a directory's git tree."""
PIECE_LINES = 128
"""How long a piece is on average; a power of two."""
PIECE_LINES_MAX = 2048
PIECE_BYTES_MAX = 1 << 20
"""Where a piece is cut whatever its names say."""


class ManifestWriter:
    """Cuts a manifest into pieces and writes each as soon as the next one begins."""

    def __init__(self, writer: ObjectWriter) -> None:
        """Pieces go to `writer`."""
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

    def add_directory(self, name: bytes, blocks: list[Block]) -> None:
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
            self._first = first_piece(text, digests, self._writer)
        else:
            blob = self._writer.write("blob", text)
            self._pieces.append(TreeItem(self._key, blob, is_tree=False))
            if digests:
                column = self._writer.write("blob", digests)
                name = self._key + COLUMN_SUFFIX
                self._columns.append(TreeItem(name, column, is_tree=False))
        self._texts, self._digests = [], []
        self._lines = self._bytes = 0


def first_piece(text: bytes, digests: bytes, writer: ObjectWriter) -> list[TreeItem]:
    """The items of the piece that stands in the directory's own tree."""
    items = [TreeItem(MANIFEST, writer.write("blob", text), is_tree=False)]
    if digests:
        items.append(TreeItem(DIGESTS, writer.write("blob", digests), is_tree=False))
    return items


def _name(line: bytes) -> bytes:
    return line[: line.index(b"\t")]


def _lines(leaves: bytes) -> list[bytes]:
    """Each with its newline; `bytes.splitlines` would split at a carriage return too."""
    return [line + b"\n" for line in leaves.split(b"\n")[:-1]]
