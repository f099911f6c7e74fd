"""Reading a snapshot: own directories, their manifests, and the whole tree as listings.

The engine reads objects through an `ObjectReader` and nothing else; what it hands over has been
checked, except for what is checked where a listing is decoded, and for rules that only a whole
directory can show when just a part of it was read (FORMAT.md, "What a reader must check").
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, TypeAlias

from huai_native import _native
from huai_schema.codec.columns import decoded
from huai_schema.codec.lines import decode_directory, decode_leaves
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.git.objects import ObjectReader
from huai_schema.limits import TOTAL_ENTRIES
from huai_schema.paths import ROOT, RelPath, parent

EntryLimit: TypeAlias = _native.EntryLimit
"""What one look at a snapshot may cost: it stops one that claims to be endless."""


class OwnDirectory(NamedTuple):
    """The git tree of a directory that does not stand in its parent's manifest."""

    children: dict[bytes, bytes]
    """Raw names of subdirectories with trees of their own, to their ids; in byte order."""
    ids: list[bytes | None]
    """What it names beside them: manifest, its digests, other pieces, their digests."""


class Snapshot:
    """The metadata of a module at one commit."""

    def __init__(self, reader: ObjectReader, tree: bytes, limit: int = TOTAL_ENTRIES) -> None:
        """`tree` is the id of the root directory's own tree.

        More than `limit` entries are a `FormatError`: a client passes the total that the
        commit announces (and that it agreed to).
        """
        self.reader = reader
        self.tree = tree
        self.limit = limit

    def undigested(self) -> _native.Undigested:
        """How many files have no digest, and how much that is; looks at all of them."""
        return _native.Undigested((self.reader, self.tree, self.limit), 0, None)

    @cached_property
    def _lookup(self) -> _native.Lookup:
        return _native.Lookup(self.reader, self.tree, self.limit)

    def own_directory(self, path: RelPath, tree: bytes) -> OwnDirectory:
        """Take the tree of `path` apart, without reading any manifest."""
        return OwnDirectory(*_native.read_own_directory(self.reader, path, tree))

    def own_tree(self, path: RelPath) -> bytes | None:
        """The id of the tree that the directory at `path` has for itself; None: it has none."""
        return self._lookup.own_tree(path)

    def listings(self) -> Iterator[Listing]:
        """The whole tree, in tree order."""
        return self.subtree(ROOT)

    def entries(self) -> Iterator[Entry]:
        """The whole tree, decoded: a directory, its leaves, then its subdirectories."""
        for listing in self.listings():
            yield from decode_listing(listing)

    def level(
        self, path: RelPath, tree: bytes, limit: EntryLimit
    ) -> Iterator[Listing | tuple[RelPath, bytes]]:
        """Listings of one own directory; a subdirectory with its own tree as (path, id)."""
        for step in _native.Level(self.reader, path, tree, limit):
            yield (RelPath(step[0]), step[1]) if len(step) == 2 else Listing._make(step)

    def directory(self, path: RelPath) -> Directory | None:
        """The attributes of one directory; None if there is no directory at `path`."""
        found = self.listing(path)
        return None if found is None else decode_directory(path, found.attributes)

    def entry(self, path: RelPath) -> Entry | None:
        """The entry at `path`; None if there is none."""
        leaf = self.leaf(path) if path else None
        return leaf or self.directory(path)

    def leaf(self, path: RelPath) -> File | Symlink | None:
        """The file or symlink at `path`; None if there is none.

        Of a large directory it reads where each piece of its manifest begins, for the first of its
        paths that is looked up, and then one piece for each.
        """
        found = self._lookup.leaf(path)
        return next(decode_leaves(parent(path), *found)) if found else None

    def listing(self, path: RelPath) -> Listing | None:
        """One directory, without its subdirectories; None if there is no directory at `path`."""
        return next(self.subtree(path), None)

    def subtree(self, path: RelPath, *filters: _native.Filter) -> Iterator[Listing]:
        """A directory and all below it in tree order; nothing if there is no directory.

        With `filters`, directories that none of them mirrors are left out, and not read.
        """
        return map(Listing._make, self._lookup.subtree(path, filters))


def leaves_from(listing: Listing, start: int) -> Iterator[File | Symlink]:
    """The files and symlinks of one directory, from the `start`-th on; those before cost little."""
    entries = decoded(_native.Entries(*listing), skip=start + 1 if start else 0)
    return (entry for entry in entries if not isinstance(entry, Directory))


def decode_listing(listing: Listing, filter_: _native.Filter | None = None) -> Iterator[Entry]:
    """The entries of one directory: itself, then its files and symlinks.

    With a filter, which mirrors the directory: those that it mirrors.  A hardlink whose leader is
    left out becomes a file of its own.
    """
    return decoded(_native.Entries(*listing, filter_))
