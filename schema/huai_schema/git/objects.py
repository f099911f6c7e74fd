"""Git's blobs and trees as bytes (git's own documentation: gitformat-pack, git-hash-object).

Only what the layout needs: object ids are 20 bytes (SHA-1), trees hold blobs and trees.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias

from huai_native import _native
from huai_schema.errors import FormatError
from huai_schema.limits import ITEM_BYTES

Kind: TypeAlias = Literal["blob", "tree", "commit"]
OID_BYTES = 20
BRANCH = "refs/heads/main"
"""Names the newest commit of a module; the only ref that a server shows."""
_BLOB, _TREE = b"100644", b"40000"


class TreeItem(NamedTuple):
    """One line of a git tree."""

    name: bytes
    oid: bytes
    is_tree: bool


class ObjectReader(Protocol):
    """Where objects come from.

    If it has `packs`, an engine's `Packs`, most objects are read from there without asking it.
    """

    def read(self, oid: bytes, kind: Kind) -> bytes:
        """The content of an object; `FormatError` if it is missing or of another kind.

        Refuses what is larger than `limits.OBJECT_BYTES` *before* inflating it: nothing
        behind this interface can.
        """
        ...


class ObjectWriter(Protocol):
    """Where objects go."""

    def write(self, kind: Kind, data: bytes) -> bytes:
        """Keep an object, return its id."""
        ...


def encode_tree(items: Iterable[TreeItem]) -> bytes:
    """A git tree; git sorts a subtree as if its name ended in a slash."""
    return _native.encode_tree(list(items))


def decode_tree(data: bytes, place: str = "") -> Iterator[TreeItem]:
    """The items of a git tree, in git's order."""
    position, previous = 0, b""
    blobs: set[bytes] = set()
    while position < len(data):
        end = data.find(b"\0", position)
        mode, _, name = data[position:end].partition(b" ")
        oid = data[end + 1 : end + 1 + OID_BYTES]
        is_tree = mode == _TREE
        if end < 0 or not name or b"/" in name or len(oid) != OID_BYTES:
            raise FormatError("a damaged git tree", place)
        if len(name) > ITEM_BYTES:
            raise FormatError(f"a git tree with a name of {len(name)} bytes", place)
        if not is_tree and mode != _BLOB:
            raise FormatError("a git tree holds something else than plain blobs and trees", place)
        order = name + b"/" if is_tree else name
        # A blob and a tree may not share a name, though git would sort them apart.
        if order <= previous or (is_tree and name in blobs):
            raise FormatError("a git tree out of order or with a repeated name", place)
        if not is_tree:
            blobs.add(name)
        previous = order
        position = end + 1 + OID_BYTES
        yield TreeItem(name, oid, is_tree)
