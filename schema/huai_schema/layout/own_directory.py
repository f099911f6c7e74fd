"""The git tree of one directory that does not stand in its parent's manifest (FORMAT.md, "Trees").

Takes the tree apart and reads nothing below it.
"""

from typing import NamedTuple

from huai_schema.errors import FormatError
from huai_schema.git.objects import decode_tree
from huai_schema.limits import PATH_BYTES
from huai_schema.paths import RelPath, check_name, join, show

MANIFEST, DIGESTS, PIECES, PIECE_DIGESTS = b"m", b"d", b"p", b"q"
SUBDIRECTORY = b"="
"""Prefix of the name of a directory that has a tree of its own."""

_BLOBS = frozenset((MANIFEST, DIGESTS))
_TREES = frozenset((PIECES, PIECE_DIGESTS))


class Piece(NamedTuple):
    """Where one piece of a manifest is to be found; equal pieces have equal ids."""

    manifest: bytes
    column: bytes | None


class OwnDirectory(NamedTuple):
    """What the git tree of a directory names."""

    path: RelPath
    manifest: Piece
    """The manifest, or its first piece if it is cut."""
    pieces: bytes | None
    """The tree of the other pieces, if there are any."""
    piece_digests: bytes | None
    """The tree of their digest columns; None: no digests."""
    children: dict[bytes, bytes]
    """Raw names of subdirectories with trees of their own, to their ids; in byte order."""


def decode_own_directory(path: RelPath, data: bytes) -> OwnDirectory:
    """The directory at `path` whose git tree is `data`."""
    place = show(path)
    ids: dict[bytes, bytes] = {}
    children: dict[bytes, bytes] = {}
    for item in decode_tree(data, place):
        if item.is_tree and item.name[:1] == SUBDIRECTORY:
            children[_child(path, item.name[1:])] = item.oid
        elif item.name in (_TREES if item.is_tree else _BLOBS):
            ids[item.name] = item.oid
        else:
            raise FormatError(f"an unknown item {show(item.name[:80])!r} in a tree", place)
    manifest, pieces = ids.get(MANIFEST), ids.get(PIECES)
    columns = ids.get(PIECE_DIGESTS)
    if manifest is None or (columns and not pieces):
        raise FormatError("a tree without a manifest, or with digests of nothing", place)
    first = Piece(manifest, ids.get(DIGESTS))
    return OwnDirectory(path, first, pieces, columns, children)


def _child(path: RelPath, name: bytes) -> bytes:
    try:
        check_name(name)
    except FormatError as error:
        raise error.within(show(path)) from None
    if len(path) + 1 + len(name) > PATH_BYTES:
        raise FormatError(f"a path of more than {PATH_BYTES} bytes", show(join(path, name)[:200]))
    return name
