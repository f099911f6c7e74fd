"""Reads a snapshot: own directories, their manifests, and the whole tree as listings.

The engine reads objects only through an `ObjectReader`, and checks what it returns.  Exceptions are
the checks of decoding a listing, and rules over a whole directory when only a part of it was read
(FORMAT.md, "What a reader must check").
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from huai_native import _native
from huai_schema.codec.columns import batch_entries, decode_entries
from huai_schema.codec.lines import decode_directory, decode_leaves
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.git.objects import ObjectReader
from huai_schema.limits import TOTAL_ENTRIES
from huai_schema.paths import ROOT, RelPath, parent


class OwnDirectory(NamedTuple):
    """The git tree of a directory that is not in its parent's manifest."""

    children: dict[bytes, bytes]
    """The ids of subdirectories with own trees, by raw name in byte order."""
    ids: list[bytes | None]
    """The ids of the other items: manifest, its digests, other pieces, their digests."""


class Snapshot:
    """The metadata of a module at one commit.

    Each method raises `FormatError` when it meets damaged metadata.
    """

    def __init__(self, reader: ObjectReader, tree: bytes, limit: int = TOTAL_ENTRIES) -> None:
        """Read lazily from `tree`, the id of the root directory's own tree.

        More than `limit` entries are a `FormatError`: a client passes the total of the commit that
        it has accepted.
        """
        self.reader = reader
        self.tree = tree
        self.limit = limit

    @property
    def arguments(self) -> tuple[ObjectReader, bytes, int]:
        """The snapshot as functions of the engine take it."""
        return self.reader, self.tree, self.limit

    def undigested(self) -> tuple[int, int]:
        """Return the number of files without a digest, and their bytes; reads all listings."""
        return _native.find_undigested(self.arguments, 0, None, (0, 0))[:2]

    @cached_property
    def _lookup(self) -> _native.Lookup:
        return _native.Lookup(*self.arguments)

    def own_directory(self, path: RelPath, tree: bytes) -> OwnDirectory:
        """Parse the own tree of the directory `path`, with the id `tree`; reads no manifest."""
        return OwnDirectory(*_native.read_own_directory(self.reader, path, tree))

    def own_tree(self, path: RelPath) -> bytes | None:
        """Return the id of the own tree of the directory at `path`, or None without an own tree."""
        return self._lookup.own_tree(path)

    def listings(self) -> Iterator[Listing]:
        """Yield the listings of the whole tree, in tree order."""
        return self.subtree(ROOT)

    def entries(self) -> Iterator[Entry]:
        """Yield all entries: a directory, its leaves, then its subdirectories."""
        for listing in self.listings():
            yield from decode_listing(listing)

    def level(self, path: RelPath, tree: bytes) -> Iterator[Listing | tuple[RelPath, bytes]]:
        """Yield the listings in the own tree of `path`, which has the id `tree`.

        For a subdirectory with an own tree its path and id are yielded instead, and nothing below
        it.
        """
        for step in self._lookup.level(path, tree):
            yield (RelPath(step[0]), step[1]) if len(step) == 2 else Listing._make(step)

    def directory(self, path: RelPath) -> Directory | None:
        """Return the directory at `path`, or None if no directory is there."""
        attributes = self._lookup.attributes(path)
        return None if attributes is None else decode_directory(path, attributes)

    def entry(self, path: RelPath) -> Entry | None:
        """Return the entry at `path`, or None if the snapshot has no such path."""
        leaf = self.leaf(path) if path else None
        return leaf or self.directory(path)

    def leaf(self, path: RelPath) -> File | Symlink | None:
        """Return the file or symlink at `path`; None for a directory or no entry.

        The first lookup in a large directory reads where each piece of its manifest begins; each
        lookup then reads one piece.
        """
        fields = self._lookup.leaf(path)
        return next(decode_leaves(parent(path), *fields)) if fields else None

    def check_hardlinks(self, paths: Sequence[bytes]) -> None:
        """Raise `FormatError` for a hardlink at `paths` without a leader, or unlike its leader."""
        self._lookup.check_hardlinks(paths)

    def listing(self, path: RelPath) -> Listing | None:
        """Return the listing of the directory at `path`, or None if no directory is there."""
        return next(self.subtree(path), None)

    def part(self, path: RelPath, start: int, most: int) -> tuple[Listing, list[Entry], int] | None:
        """Return a directory, at most `most` of its entries, and the number of all of them.

        The entries begin with number `start`: subdirectories, then files and symlinks, by name.
        None if no directory is there.
        """
        if (part := self._lookup.part(path, start, most)) is None:
            return None
        listing, batch, total = part
        return Listing._make(listing), batch_entries(batch), total

    def totals(
        self, sums: _native.SubtreeTotals, paths: Sequence[RelPath], seconds: float
    ) -> list[tuple[int, int, int] | None]:
        """Return the files, symlinks and bytes below directories, as `SubtreeTotals.count` does."""
        return sums.count(self._lookup, paths, seconds)

    def subtree(self, path: RelPath, *filters: _native.Filter) -> Iterator[Listing]:
        """Yield the listings of the directory at `path` and all below it, in tree order.

        Yields nothing if no directory is there.  Directories that none of `filters` (if given)
        mirrors are skipped, and not read.
        """
        return map(Listing._make, self._lookup.subtree(path, filters))


def leaves_from(listing: Listing, start: int) -> Iterator[File | Symlink]:
    """Yield the files and symlinks of one directory; skip the first `start`, at little cost.

    Raises `FormatError` if a line is malformed.
    """
    entries = decode_entries(_native.Entries(*listing), skip=start + 1 if start else 0)
    return (entry for entry in entries if not isinstance(entry, Directory))


def decode_listing(listing: Listing, filter_: _native.Filter | None = None) -> Iterator[Entry]:
    """Yield the entries of one directory: itself, then its files and symlinks.

    A filter, which must mirror the directory, selects among them.  A hardlink whose leader is left
    out becomes an independent file.  Raises `FormatError` if a line is malformed.
    """
    return decode_entries(_native.Entries(*listing, filter_))
