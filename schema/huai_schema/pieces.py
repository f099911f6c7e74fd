"""The radix tree that holds the pieces of a cut manifest (FORMAT.md, "Pieces").

Knows names and ids only, never what a piece says.  A tree is refused unless it is the one
that `write_pieces` makes; that also bounds what a hostile one can cost, because no part of
it can be used under two names.
"""

from hashlib import sha256

from huai_schema.errors import FormatError
from huai_schema.gitobjects import ObjectReader, ObjectWriter, TreeItem, decode_tree, encode_tree
from huai_schema.paths import show

FANOUT = 64
"""A tree of at most this many pieces is not split further."""
KEY_DIGITS = 16


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


def read_pieces(
    reader: ObjectReader, tree: bytes, place: str, prefix: bytes = b""
) -> dict[bytes, bytes]:
    """All pieces at or below `tree`: key to blob id."""
    items = _node(reader, tree, place, prefix)
    if not items[0].is_tree:
        return {item.name: item.oid for item in items}
    found: dict[bytes, bytes] = {}
    for item in items:
        found.update(read_pieces(reader, item.oid, place, prefix + item.name))
    if len(found) <= FANOUT:
        raise FormatError("a tree of pieces that is split without need", place)
    return found


def find_piece(reader: ObjectReader, tree: bytes, key: bytes, place: str) -> bytes | None:
    """The blob id of one piece; reads only the trees on the way to it."""
    for depth in range(KEY_DIGITS + 1):
        items = {item.name: item for item in _node(reader, tree, place, key[:depth])}
        if key in items:
            return items[key].oid
        inner = items.get(key[depth : depth + 1])
        if inner is None:
            return None
        tree = inner.oid
    return None


class Side:
    """One side of a comparison: a tree of pieces and where to read it."""

    def __init__(self, reader: ObjectReader, tree: bytes | None, place: str) -> None:
        """`tree` may be None: no pieces at all."""
        self._reader = reader
        self._place = place
        self.tree = tree

    def node(self, tree: bytes, prefix: bytes) -> dict[bytes, TreeItem]:
        """The items of one tree by name."""
        return {item.name: item for item in _node(self._reader, tree, self._place, prefix)}

    def below(self, item: TreeItem | None, prefix: bytes) -> dict[bytes, bytes]:
        """All pieces at or below an item."""
        if item is None:
            return {}
        if item.is_tree:
            return read_pieces(self._reader, item.oid, self._place, prefix)
        return {item.name: item.oid}

    def look_up(self, keys: set[bytes]) -> dict[bytes, bytes]:
        """The ids of `keys`, as far as they exist."""
        if self.tree is None or not keys:
            return {}
        if len(keys) > FANOUT:
            every = read_pieces(self._reader, self.tree, self._place)
            return {key: every[key] for key in keys if key in every}
        found = {key: find_piece(self._reader, self.tree, key, self._place) for key in keys}
        return {key: oid for key, oid in found.items() if oid is not None}


def unequal(old: Side, new: Side) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
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


def _is_split(items: dict[bytes, TreeItem]) -> bool:
    return any(item.is_tree for item in items.values())


def _node(reader: ObjectReader, tree: bytes, place: str, prefix: bytes) -> list[TreeItem]:
    """The items of one tree: pieces only, or trees only; at least one."""
    items = list(decode_tree(reader.read(tree, "tree"), place))
    split = bool(items) and items[0].is_tree and len(prefix) < KEY_DIGITS
    for item in items:
        if split:
            fits = item.is_tree and len(item.name) == 1
        else:
            fits = not item.is_tree and len(item.name) == KEY_DIGITS
            fits = fits and item.name.startswith(prefix)
        if not fits:
            raise FormatError(f"an unknown piece {show(item.name)!r}", place)
    if not items or (not split and len(items) > FANOUT):
        raise FormatError("a tree of pieces that is empty or too large", place)
    return items
