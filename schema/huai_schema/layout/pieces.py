"""The radix tree that holds the pieces of a cut manifest (FORMAT.md, "Pieces").

Knows names and ids only, never what a piece says.  A tree is refused unless it is the one
that `write_pieces` makes; that also bounds what a hostile one can cost, because no part of
it can be used under two names.
"""

from hashlib import sha256

from huai_schema.errors import FormatError
from huai_schema.git.objects import ObjectReader, ObjectWriter, TreeItem, decode_tree, encode_tree
from huai_schema.paths import show

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


class PieceTree:
    """The tree `p` or `q` of one directory and where to read it."""

    def __init__(
        self, reader: ObjectReader, tree: bytes | None, place: str, suffix: bytes = b""
    ) -> None:
        """`tree` may be None: no pieces at all.  `suffix` ends the name of each."""
        self._reader = reader
        self._place = place
        self._suffix = suffix
        self.tree = tree

    def all(self) -> dict[bytes, bytes]:
        """All pieces: key to blob id."""
        return {} if self.tree is None else self._read(self.tree, b"")

    def find(self, key: bytes) -> bytes | None:
        """The blob id of one piece; reads only the trees on the way to it."""
        tree = self.tree
        for depth in range(KEY_DIGITS + 1):
            if tree is None:
                return None
            items = self.node(tree, key[:depth])
            if key + self._suffix in items:
                return items[key + self._suffix].oid
            inner = items.get(key[depth : depth + 1])
            tree = None if inner is None else inner.oid
        return None

    def node(self, tree: bytes, prefix: bytes) -> dict[bytes, TreeItem]:
        """The items of one tree by name: pieces only, or trees only; at least one."""
        items = list(decode_tree(self._reader.read(tree, "tree"), self._place))
        split = bool(items) and items[0].is_tree and len(prefix) < KEY_DIGITS
        for item in items:
            if not (_is_inner(item) if split else self._is_piece(item, prefix)):
                raise FormatError(f"an unknown piece {show(item.name[:80])!r}", self._place)
        if not items or (not split and len(items) > FANOUT):
            raise FormatError("a tree of pieces that is empty or too large", self._place)
        return {item.name: item for item in items}

    def below(self, item: TreeItem | None, prefix: bytes) -> dict[bytes, bytes]:
        """All pieces at or below an item."""
        if item is None:
            return {}
        if item.is_tree:
            return self._read(item.oid, prefix)
        return {item.name[:KEY_DIGITS]: item.oid}

    def _read(self, tree: bytes, prefix: bytes) -> dict[bytes, bytes]:
        items = self.node(tree, prefix)
        found: dict[bytes, bytes] = {}
        for name, item in items.items():
            found.update(self.below(item, prefix + name))
        if _is_split(items) and len(found) <= FANOUT:
            raise FormatError("a tree of pieces that is split without need", self._place)
        return found

    def _is_piece(self, item: TreeItem, prefix: bytes) -> bool:
        fits = len(item.name) == KEY_DIGITS + len(self._suffix)
        return (
            fits
            and not item.is_tree
            and item.name.startswith(prefix)
            and (item.name.endswith(self._suffix))
        )

    def look_up(self, keys: set[bytes]) -> dict[bytes, bytes]:
        """The ids of `keys`, as far as they exist."""
        if self.tree is None or not keys:
            return {}
        if len(keys) > FANOUT:
            every = self.all()
            return {key: every[key] for key in keys if key in every}
        found = {key: self.find(key) for key in keys}
        return {key: oid for key, oid in found.items() if oid is not None}


def unequal(old: PieceTree, new: PieceTree) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """The pieces of each side that the other has not; reads no tree that both have."""
    gone: dict[bytes, bytes] = {}
    added: dict[bytes, bytes] = {}
    roots = [None if s.tree is None else TreeItem(b"", s.tree, is_tree=True) for s in (old, new)]
    pending = [(b"", roots[0], roots[1])]
    while pending:
        prefix, before, after = pending.pop()
        if before == after:
            continue
        if before is None or after is None or not (before.is_tree and after.is_tree):
            gone.update(old.below(before, prefix))
            added.update(new.below(after, prefix))
            continue
        these, those = old.node(before.oid, prefix), new.node(after.oid, prefix)
        if _is_split(these) == _is_split(those):
            names = these.keys() | those.keys()
            pending += [(prefix + name, these.get(name), those.get(name)) for name in names]
        else:
            gone.update(old.below(before, prefix))
            added.update(new.below(after, prefix))
    same = [key for key, oid in gone.items() if added.get(key) == oid]
    for key in same:
        del gone[key], added[key]
    return gone, added


def _is_inner(item: TreeItem) -> bool:
    return item.is_tree and len(item.name) == 1


def _is_split(items: dict[bytes, TreeItem]) -> bool:
    return any(item.is_tree for item in items.values())
