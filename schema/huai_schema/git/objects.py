"""Git's blobs and trees as bytes (gitformat-pack(5), git-hash-object(1)).

Covers the needs of the layout: object ids are SHA-1, trees hold blobs and trees.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias

from huai_native import _native

Kind: TypeAlias = Literal["blob", "tree", "commit"]
OID_BYTES = 20
BRANCH = "refs/heads/main"
"""The ref of the newest commit of a module, the only ref that a server shows."""


class TreeItem(NamedTuple):
    """An item of a git tree."""

    name: bytes
    oid: bytes
    is_tree: bool


class ObjectReader(Protocol):
    """A source of objects.

    If it has `packs`, an engine's `Packs`, most objects are read from there without calling it.
    """

    def read(self, oid: bytes, kind: Kind) -> bytes:
        """Return the content of an object; `FormatError` if it is missing or of another kind.

        Raises it for an object larger than `limits.OBJECT_BYTES` *before* inflating the object.
        """
        ...


class ObjectWriter(Protocol):
    """A store of objects."""

    def write(self, kind: Kind, data: bytes) -> bytes:
        """Store an object and return its id."""
        ...


def object_id(kind: Kind, data: bytes) -> bytes:
    """Return the SHA-1 id of an object made here; does not check for collisions."""
    return _native.object_id(kind, data)


def encode_tree(items: Iterable[TreeItem]) -> bytes:
    """Sort items as git does, a subtree as if its name ended in a slash, and encode the tree."""
    return _native.encode_tree(list(items))


def decode_tree(data: bytes, place: str = "") -> Iterator[TreeItem]:
    """Parse a git tree; yield its items in git's order; `FormatError` at `place` if malformed."""
    return map(TreeItem._make, _native.decode_tree(data, place))
