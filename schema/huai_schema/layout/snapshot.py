"""Reading a snapshot: own directories, their manifests, and the whole tree as listings.

Reads objects through an `ObjectReader` and nothing else; what it yields has been checked,
except for what `lines` checks where a listing is decoded, and for rules that only a whole
directory can show when just a part of it was read (FORMAT.md, "What a reader must check").
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain
from typing import NamedTuple

from huai_schema.codec.blocks import Block, join_digests
from huai_schema.codec.escaping import escape, unescape
from huai_schema.codec.lines import count_files, decode_directory, decode_leaves, has_leaf
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory, Entry
from huai_schema.errors import FormatError
from huai_schema.git.objects import ObjectReader
from huai_schema.layout.common_parts import Text
from huai_schema.layout.entry_limit import EntryLimit
from huai_schema.layout.manifest import InlineDirectory, Manifest, decode_manifest, piece_start
from huai_schema.layout.own_directory import MANIFEST, OwnDirectory, Piece, decode_own_directory
from huai_schema.layout.pieces import COLUMN_SUFFIX, PieceTree, piece_key
from huai_schema.limits import (
    DIGEST_BYTES,
    MANIFEST_BYTES,
    MANIFEST_LINES,
    PATH_BYTES,
    TOTAL_ENTRIES,
)
from huai_schema.paths import ROOT, RelPath, join, parent, path_order, show

_RECENT, _RECENT_CHILDREN = 64, 1 << 16
"""Own directories that are kept: those above a path are looked at again for its neighbours."""
_KNOWN = 1024
"""Paths of own directories whose ids are kept, so that a deep path is not walked from the root."""
_COLUMN_BYTES = MANIFEST_LINES * DIGEST_BYTES


class _Located(NamedTuple):
    """A piece and where it begins."""

    order: tuple[int, bytes]
    key: bytes
    piece: Piece


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
        self._located: tuple[Piece, bytes | None, bytes | None] | None = None
        self._order: list[_Located] = []
        self._recent: dict[tuple[RelPath, bytes], OwnDirectory] = {}
        self._recent_children = 0
        self._known: dict[RelPath, bytes] = {}

    def own_directory(self, path: RelPath, tree: bytes) -> OwnDirectory:
        """Take the tree of `path` apart, without reading any manifest."""
        if (path, tree) in self._recent:
            return self._recent[path, tree]
        found = decode_own_directory(path, self.reader.read(tree, "tree"))
        self._recent_children += len(found.children)
        self._recent[path, tree] = found
        while len(self._recent) > _RECENT or (
            self._recent_children > _RECENT_CHILDREN and len(self._recent) > 1
        ):
            oldest = self._recent.pop(next(iter(self._recent)))
            self._recent_children -= len(oldest.children)
        return found

    def pieces(self, directory: OwnDirectory) -> dict[bytes, Piece]:
        """All pieces by key; that of the first one is `m`."""
        found = {MANIFEST: directory.manifest}
        if directory.pieces is None:
            return found
        place = show(directory.path)
        texts = PieceTree(self.reader, directory.pieces, place).all()
        columns = PieceTree(self.reader, directory.piece_digests, place, COLUMN_SUFFIX).all()
        if not columns.keys() <= texts.keys():
            raise FormatError("a digest column without its manifest", place)
        return found | {key: Piece(oid, columns.get(key)) for key, oid in texts.items()}

    def manifest(self, key: bytes, piece: Piece, place: str) -> Manifest:
        """Read one piece; checks that it is named after its start."""
        return decode_manifest(*self.text(key, piece, place), place)

    def text(self, key: bytes, piece: Piece, place: str) -> Text:
        """The same, not taken apart yet."""
        text = self._manifest_text(piece, place)
        column = b"" if piece.column is None else self.reader.read(piece.column, "blob")
        if piece.column is not None and not column:
            raise FormatError("an empty digest column", place)
        if len(column) > _COLUMN_BYTES:
            raise FormatError(f"a digest column of more than {_COLUMN_BYTES} bytes", place)
        _check_key(key, piece_start(text, place), place)
        return Text(text, column)

    def manifests(self, directory: OwnDirectory) -> Iterator[Manifest]:
        """All pieces in the order of what they hold."""
        place = show(directory.path)
        if directory.pieces is None:
            yield self.manifest(MANIFEST, directory.manifest, place)
            return
        for located in self._in_order(directory):
            yield self.manifest(located.key, located.piece, place)

    def order(self, key: bytes, piece: Piece, place: str) -> tuple[int, bytes]:
        """Sorts the pieces of one manifest: own line, leaves, subdirectories, each by raw name."""
        start = piece_start(self._manifest_text(piece, place), place)
        _check_key(key, start, place)
        try:
            if start.endswith(b"/"):
                return 2, path_order(unescape(start[:-1]))
            return (1, unescape(start)) if start else (0, b"")
        except FormatError as error:
            raise error.within(place) from None

    def listings(self) -> Iterator[Listing]:
        """The whole tree, in tree order."""
        return self.listings_below(ROOT, self.tree, EntryLimit(self.limit))

    def listings_below(self, path: RelPath, tree: bytes, limit: EntryLimit) -> Iterator[Listing]:
        """Everything in the own directory `path`, itself first, in tree order."""
        stack = [self.level(path, tree, limit)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            elif isinstance(step, Listing):
                yield step
            else:
                stack.append(self.level(*step, limit))

    def entries(self) -> Iterator[Entry]:
        """The whole tree, decoded: a directory, its leaves, then its subdirectories."""
        for listing in self.listings():
            yield from decode_listing(listing)

    def directory(self, path: RelPath) -> Directory | None:
        """The attributes of one directory; None if there is no directory at `path`."""
        found = self.listing(path)
        return None if found is None else decode_directory(path, found.attributes)

    def entry(self, path: RelPath) -> Entry | None:
        """The entry at `path`; None if there is none."""
        above = self.listing(parent(path)) if path else None
        if above is not None:
            for entry in decode_leaves(above.path, above.leaves, above.digests):
                if entry.path == path:
                    return entry
        return self.directory(path)

    def listing(self, path: RelPath) -> Listing | None:
        """One directory, without its subdirectories; None if there is no directory at `path`."""
        return next(self.subtree(path), None)

    def subtree(self, path: RelPath) -> Iterator[Listing]:
        """A directory and all below it in tree order; nothing if there is no directory."""
        here, tree = self._nearest(path)
        while here != path:
            rest = path[len(here) + 1 if here else 0 :]
            name = rest.partition(b"/")[0]
            directory = self.own_directory(here, tree)
            if name in directory.children:
                here, tree = join(here, name), directory.children[name]
                self._note(here, tree)
                continue
            relative = escape(rest)
            inline = self._inline_directory(directory, name)
            for block in inline.blocks if inline else ():
                if block.relative == relative or block.relative.startswith(relative + b"/"):
                    yield listing_of(here, block)
            return
        yield from self.listings_below(path, tree, EntryLimit(self.limit))

    def _nearest(self, path: RelPath) -> tuple[RelPath, bytes]:
        """The own directory that is known to be at `path` or the next above it, and its id."""
        while path and path not in self._known:
            path = parent(path)
        return path, self._known.get(path, self.tree)

    def _note(self, path: RelPath, tree: bytes) -> None:
        if len(self._known) >= _KNOWN:
            del self._known[next(iter(self._known))]
        self._known[path] = tree

    def _manifest_text(self, piece: Piece, place: str) -> bytes:
        text = self.reader.read(piece.manifest, "blob")
        if len(text) > MANIFEST_BYTES:
            raise FormatError(f"a manifest of more than {MANIFEST_BYTES} bytes", place)
        return text

    def level(
        self, path: RelPath, tree: bytes, limit: EntryLimit
    ) -> Iterator[Listing | tuple[RelPath, bytes]]:
        """Listings of one own directory; a subdirectory with its own tree as (path, id)."""
        directory = self.own_directory(path, tree)
        place = show(path)
        limit.spend_trees(len(directory.children), place)
        manifests = self._spending(self.manifests(directory), limit, place)
        attributes: bytes | None = None
        columns: list[tuple[int, bytes]] = []
        leaves: list[bytes] = []
        inline: tuple[InlineDirectory, ...] = ()
        for manifest in manifests:
            attributes = manifest.attributes if attributes is None else attributes
            leaves.append(manifest.leaves)
            columns.append((count_files(manifest.leaves), manifest.digests))
            inline = manifest.inline
            if inline:
                break
        if attributes is None:
            raise FormatError("a directory without its own line", place)
        own = Listing(path, attributes, b"".join(leaves), join_digests(columns))
        del leaves, columns
        yield own
        later = chain.from_iterable(_inline_only(manifest, place) for manifest in manifests)
        yield from _subdirectories(directory, own.leaves, chain(inline, later))

    def _spending(
        self, manifests: Iterator[Manifest], limit: EntryLimit, place: str
    ) -> Iterator[Manifest]:
        for manifest in manifests:
            own = manifest.attributes is not None
            limit.spend(own + manifest.leaves.count(b"\n"), place)
            blocks = [block for each in manifest.inline for block in each.blocks]
            limit.spend(sum(block.lines for block in blocks), place)
            size = len(manifest.attributes or b"") + len(manifest.leaves) + len(manifest.digests)
            limit.spend_bytes(size + sum(block.size for block in blocks), place)
            yield manifest

    def _in_order(self, directory: OwnDirectory) -> list[_Located]:
        """The pieces of a cut manifest, sorted by where they begin.

        The keys are hashes and tell no order, so each piece is read once for its start; the
        result is kept for the next look into the same directory.
        """
        trees = directory.manifest, directory.pieces, directory.piece_digests
        if trees != self._located:
            place = show(directory.path)
            self._order = sorted(
                _Located(self.order(key, piece, place), key, piece)
                for key, piece in self.pieces(directory).items()
            )
            self._located = trees
        return self._order

    def _inline_directory(self, directory: OwnDirectory, name: bytes) -> InlineDirectory | None:
        """The subdirectory `name`, if it stands in the manifest of `directory`."""
        place = show(directory.path)
        if directory.pieces is None:
            manifest = self.manifest(MANIFEST, directory.manifest, place)
        else:
            located = self._in_order(directory)
            index = bisect_right(located, (2, name), key=lambda each: each.order)
            manifest = self.manifest(located[index - 1].key, located[index - 1].piece, place)
        return next((each for each in manifest.inline if each.name == name), None)


def decode_listing(listing: Listing) -> Iterator[Entry]:
    """The entries of one directory: itself, then its files and symlinks."""
    yield decode_directory(listing.path, listing.attributes)
    yield from decode_leaves(listing.path, listing.leaves, listing.digests)


def listing_of(directory: RelPath, block: Block) -> Listing:
    """A block in a manifest of `directory`, with its full path."""
    path = join(directory, unescape(block.relative))
    if len(path) > PATH_BYTES:
        raise FormatError(f"a path of more than {PATH_BYTES} bytes", show(path[:200]))
    return Listing(path, block.attributes, block.leaves, block.digests)


def _check_free(path: RelPath, name: bytes, leaves: bytes) -> None:
    try:
        if has_leaf(leaves, name):
            raise FormatError("a name is both a directory and not")
    except FormatError as error:
        raise error.within(show(path)) from None


def _check_key(key: bytes, start: bytes, place: str) -> None:
    if key == MANIFEST and start:
        raise FormatError("a directory without its own line", place)
    if key != (piece_key(start) if start else MANIFEST):
        raise FormatError("a piece is not named after its start", f"{place}: {show(start[:200])}")


def _inline_only(manifest: Manifest, place: str) -> Iterable[InlineDirectory]:
    """What may still come once the subdirectories have begun."""
    if manifest.attributes is not None or manifest.leaves:
        raise FormatError("a file or symlink after a subdirectory", place)
    return manifest.inline


def _subdirectories(
    directory: OwnDirectory, leaves: bytes, inline: Iterable[InlineDirectory]
) -> Iterator[Listing | tuple[RelPath, bytes]]:
    """Those in the manifest and those with trees of their own, by name."""
    here: Iterator[tuple[bytes, InlineDirectory | bytes]] = ((each.name, each) for each in inline)
    own: list[tuple[bytes, InlineDirectory | bytes]] = sorted(directory.children.items())
    previous = b""
    for name, found in merge(here, own, key=lambda each: each[0]):
        path = join(directory.path, name)
        if name <= previous:
            raise FormatError("subdirectories out of order or repeated", show(path))
        _check_free(path, name, leaves)
        previous = name
        if not isinstance(found, bytes):
            for block in found.blocks:
                yield listing_of(directory.path, block)
        else:
            yield path, found
