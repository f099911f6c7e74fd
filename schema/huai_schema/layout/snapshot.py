"""Reading a snapshot: own directories, their manifests, and the whole tree as listings.

The engine reads objects through an `ObjectReader` and nothing else; what it hands over has been
checked, except for what is checked where a listing is decoded, and for rules that only a whole
directory can show when just a part of it was read (FORMAT.md, "What a reader must check").
"""

from collections.abc import Iterator
from typing import TypeAlias

from huai_native import _native
from huai_schema.codec.columns import decoded
from huai_schema.codec.lines import decode_directory, decode_leaves
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.git.objects import ObjectReader
from huai_schema.limits import TOTAL_ENTRIES
from huai_schema.paths import ROOT, RelPath, join, parent, relative

EntryLimit: TypeAlias = _native.EntryLimit
"""What one look at a snapshot may cost: it stops one that claims to be endless."""
OwnDirectory: TypeAlias = _native.OwnDirectory

_RECENT, _RECENT_CHILDREN = 64, 1 << 16
"""Own directories that are kept: those above a path are looked at again for its neighbours."""
_KNOWN = 1024
"""Paths of own directories whose ids are kept, so that a deep path is not walked from the root."""


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
        self._recent: dict[tuple[RelPath, bytes], OwnDirectory] = {}
        self._recent_children = 0
        self._known: dict[RelPath, bytes] = {}

    def undigested(self) -> _native.Undigested:
        """How many files have no digest, and how much that is; looks at all of them."""
        return _native.Undigested((self.reader, self.tree, self.limit), 0, None)

    def own_directory(self, path: RelPath, tree: bytes) -> OwnDirectory:
        """Take the tree of `path` apart, without reading any manifest."""
        if (path, tree) in self._recent:
            return self._recent[path, tree]
        found = OwnDirectory(self.reader, path, tree)
        self._recent_children += len(found.children)
        self._recent[path, tree] = found
        while len(self._recent) > _RECENT or (
            self._recent_children > _RECENT_CHILDREN and len(self._recent) > 1
        ):
            oldest = self._recent.pop(next(iter(self._recent)))
            self._recent_children -= len(oldest.children)
        return found

    def own_tree(self, path: RelPath) -> bytes | None:
        """The id of the tree that the directory at `path` has for itself; None: it has none."""
        here, tree = ROOT, self.tree
        for name in path.split(b"/") if path else ():
            children = self.own_directory(here, tree).children
            if name not in children:
                return None
            here, tree = join(here, name), children[name]
        return tree

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
        directory = parent(path)
        here, tree = self._own_above(directory)
        found = self.own_directory(here, tree).leaf(relative(path, here))
        return next(decode_leaves(directory, *found)) if found else None

    def listing(self, path: RelPath) -> Listing | None:
        """One directory, without its subdirectories; None if there is no directory at `path`."""
        return next(self.subtree(path), None)

    def subtree(self, path: RelPath, *filters: _native.Filter) -> Iterator[Listing]:
        """A directory and all below it in tree order; nothing if there is no directory.

        With `filters`, directories that none of them mirrors are left out, and not read.
        """

        def is_mirrored(path: bytes) -> bool:
            return not filters or any(each.reaches(path, directory=True) for each in filters)

        if not is_mirrored(path):
            return
        here, tree = self._own_above(path)
        if here == path:
            walk = _native.Walk(self.reader, path, tree, self.limit, filters)
            yield from map(Listing._make, walk)
        else:
            own = self.own_directory(here, tree)
            listings = map(Listing._make, own.inlined(relative(path, here)))
            yield from (listing for listing in listings if is_mirrored(listing.path))

    def _own_above(self, path: RelPath) -> tuple[RelPath, bytes]:
        """The directory at `path`, or the next above it that has a tree of its own; its id."""
        here, tree = self._nearest(path)
        while here != path:
            name = relative(path, here).partition(b"/")[0]
            children = self.own_directory(here, tree).children
            if name not in children:
                break
            here, tree = join(here, name), children[name]
            self._note(here, tree)
        return here, tree

    def _nearest(self, path: RelPath) -> tuple[RelPath, bytes]:
        """The own directory that is known to be at `path` or the next above it, and its id."""
        while path and path not in self._known:
            path = parent(path)
        return path, self._known.get(path, self.tree)

    def _note(self, path: RelPath, tree: bytes) -> None:
        if len(self._known) >= _KNOWN:
            del self._known[next(iter(self._known))]
        self._known[path] = tree


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
