"""The parts of which there is a record: the directories that have a git tree of their own.

So a part is a directory with those small ones below it that stand in its manifest, and there
are at most as many parts as the tree has entries, divided by what a manifest holds.  What a
part says is known by ids, without reading its manifest.
"""

from hashlib import sha256
from typing import NamedTuple

from huai_client.diff.selection import Selection
from huai_schema.layout.own_directory import OwnDirectory
from huai_schema.paths import ROOT, RelPath, join

_IDENTITY_BYTES = 16


class Part(NamedTuple):
    """One of them, in one commit."""

    path: RelPath
    tree: bytes
    """The git id of its tree; equal ids: nothing below it changed either."""
    identity: bytes
    """Equal: its own entries are equal; 16 bytes."""
    children: dict[RelPath, bytes]
    """The parts directly in it, and their trees."""

    @property
    def apart(self) -> frozenset[RelPath]:
        """What is no business of this part."""
        return frozenset(self.children)


def part_at(selection: Selection, path: RelPath) -> Part | None:
    """The part at `path`; None if there is none, or the filter leaves it out."""
    snapshot = selection.snapshot
    here, tree = ROOT, snapshot.tree
    for name in path.split(b"/") if path else ():
        children = snapshot.own_directory(here, tree).children
        if name not in children:
            return None
        here, tree = join(here, name), children[name]
    return None if selection.rules.excludes_whole(path) else make_part(selection, path, tree)


def make_part(selection: Selection, path: RelPath, tree: bytes) -> Part:
    """The part at `path`, whose tree is known to be `tree`."""
    own = selection.snapshot.own_directory(path, tree)
    paths = ((join(path, name), oid) for name, oid in own.children.items())
    shown = {below: oid for below, oid in paths if not selection.rules.excludes_whole(below)}
    return Part(path, tree, _identity(own), shown)


def _identity(own: OwnDirectory) -> bytes:
    ids = (*own.manifest, own.pieces, own.piece_digests)
    return sha256(b"".join(oid or b"-" for oid in ids)).digest()[:_IDENTITY_BYTES]
