"""The radix tree that holds the pieces of a cut manifest (FORMAT.md, "Pieces").

Knows names and ids only, never what a piece says.
"""

from hashlib import sha256

from huai_schema.git.objects import ObjectWriter, TreeItem, encode_tree

FANOUT = 64
"""A tree of at most this many pieces is not split further."""
KEY_DIGITS = 16
COLUMN_SUFFIX = b".d"
"""Ends the name of a digest column: by the end of its path git tells it from the piece it is of."""


def piece_key(start: bytes) -> bytes:
    """The name of a piece in its tree: never the start itself, which would spoil git's deltas."""
    return sha256(start).hexdigest()[:KEY_DIGITS].encode()


def write_pieces(pieces: list[TreeItem], writer: ObjectWriter, depth: int = 0) -> bytes:
    """Write the tree of `pieces`, split by the digits of their names; returns its id."""
    if len(pieces) <= FANOUT:
        return writer.write("tree", encode_tree(pieces))
    digits: dict[bytes, list[TreeItem]] = {}
    for piece in pieces:
        digits.setdefault(piece.name[depth : depth + 1], []).append(piece)
    below = [
        TreeItem(digit, write_pieces(group, writer, depth + 1), is_tree=True)
        for digit, group in digits.items()
    ]
    return writer.write("tree", encode_tree(below))
