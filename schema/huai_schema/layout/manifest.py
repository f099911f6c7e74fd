"""One manifest blob, taken apart into the directories it describes (FORMAT.md, "Manifests").

Works on text: it finds the directory lines and checks how they nest; the lines in between
are decoded by `lines` only where somebody looks at them.
"""

import re
from typing import NamedTuple

from huai_schema import limits
from huai_schema.codec.blocks import Block
from huai_schema.codec.escaping import unescape
from huai_schema.codec.lines import count_files
from huai_schema.errors import FormatError
from huai_schema.layout.layout import INLINE_ENTRIES
from huai_schema.paths import check_name, show

_HEADER = re.compile(rb"^([^\t\n]*)/\t([^\n]*)\n", re.MULTILINE)


class InlineDirectory(NamedTuple):
    """A subdirectory inside a manifest, with everything below it."""

    name: bytes
    """Raw name, one component."""
    blocks: tuple[Block, ...]
    """In tree order; the first is the subdirectory itself."""


class Manifest(NamedTuple):
    """A manifest, or one piece of a manifest."""

    attributes: bytes | None
    """Of the manifest's own directory; only its first piece has them."""
    leaves: bytes
    """Files and symlinks of the manifest's own directory."""
    digests: bytes
    """The part of the column that belongs to `leaves`; empty: all absent."""
    inline: tuple[InlineDirectory, ...]


def piece_start(text: bytes, place: str) -> bytes:
    """The escaped name a manifest begins with, a subdirectory's with its slash; empty for `./`."""
    start, tab, _ = text[: limits.LINE_BYTES].partition(b"\t")
    if not tab or not start:
        raise FormatError("a manifest that is empty or begins with no name", place)
    return b"" if start == b"./" else start


def decode_manifest(text: bytes, column: bytes = b"", place: str = "") -> Manifest:
    """Split `text`; `column` is its digest column, empty if there is none."""
    piece_start(text, place)  # checks that it begins with a name
    if text.count(b"\n") > limits.MANIFEST_LINES:
        raise FormatError(f"more than {limits.MANIFEST_LINES} lines in a manifest", place)
    if not text.endswith(b"\n"):
        raise FormatError("a manifest that does not end in a newline", place)
    if column and not column.strip(b"\0"):
        raise FormatError("a digest column without any digest", place)
    own, *below = _blocks(text, column, place)
    attributes: bytes | None = None
    if below and below[0].relative == b".":
        if own.leaves:
            raise FormatError("the directory's own line is not the first", place)
        own = below.pop(0)
        attributes = own.attributes
    return Manifest(attributes, own.leaves, own.digests, _inline_directories(below, place))


def _blocks(text: bytes, column: bytes, place: str) -> list[Block]:
    """The text cut at the lines of directories; the first block is what stands before them."""
    blocks: list[Block] = []
    relative = attributes = b""
    begin = offset = files = 0
    for found in (*_HEADER.finditer(text), None):
        leaves = text[begin : found.start() if found else len(text)]
        count = count_files(leaves)
        files += count
        digests = column[offset : limits.DIGEST_BYTES * files]
        offset += len(digests)
        digests = digests if digests.strip(b"\0") else b""
        blocks.append(Block(relative, attributes, leaves, digests))
        if found:
            begin = found.end()
            relative, attributes = found.groups()
    if column and len(column) != limits.DIGEST_BYTES * files:
        raise FormatError("the digest column has not one digest for each file", place)
    return blocks


def _inline_directories(blocks: list[Block], place: str) -> tuple[InlineDirectory, ...]:
    """Check that the blocks nest and are in tree order; bundle them by their first name."""
    inline: list[InlineDirectory] = []
    above: list[bytes] = []
    first = 0
    for index, block in enumerate(blocks):
        try:
            names = _nested_names(block.relative, above)
        except FormatError as error:
            raise error.within(f"{place}: {show(block.relative[:200])}") from None
        if len(names) == 1 and index:
            inline.append(_inline_directory(above[0], blocks[first:index], place))
            first = index
        above = names
    if blocks:
        inline.append(_inline_directory(above[0], blocks[first:], place))
    return tuple(inline)


def _nested_names(relative: bytes, above: list[bytes]) -> list[bytes]:
    """The components of a directory's line; `above` are those of the line before it."""
    depth = relative.count(b"/")
    if depth > len(above):
        raise FormatError("a directory without the one above it")
    names = [check_name(unescape(name)) for name in relative.split(b"/")]
    if names[:depth] != above[:depth]:
        raise FormatError("a directory without the one above it")
    if depth < len(above) and names[depth] <= above[depth]:
        raise FormatError("directories out of order")
    return names


def _inline_directory(name: bytes, blocks: list[Block], place: str) -> InlineDirectory:
    if sum(block.lines for block in blocks) > INLINE_ENTRIES:
        raise FormatError(
            f"a directory of more than {INLINE_ENTRIES} entries inside a manifest",
            f"{place}: {show(name)}",
        )
    return InlineDirectory(name, tuple(blocks))
