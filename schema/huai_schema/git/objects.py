"""Git's blobs and trees as bytes (git's own documentation: gitformat-pack, git-hash-object).

Only what the layout needs: object ids are 20 bytes (SHA-1), trees hold blobs and trees.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias

from huai_native import _native

Kind: TypeAlias = Literal["blob", "tree", "commit"]
BRANCH = "refs/heads/main"
"""Names the newest commit of a module; the only ref that a server shows."""


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


def object_id(kind: Kind, data: bytes) -> bytes:
    """The id of an object that was made here: nobody looks for collisions."""
    return _native.object_id(kind, data)


def encode_tree(items: Iterable[TreeItem]) -> bytes:
    """A git tree; git sorts a subtree as if its name ended in a slash."""
    return _native.encode_tree(list(items))


def decode_tree(data: bytes, place: str = "") -> Iterator[TreeItem]:
    """The items of a git tree, in git's order; `FormatError` at `place` for a wrong one."""
    return map(TreeItem._make, _native.decode_tree(data, place))
