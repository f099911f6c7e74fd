"""The unequal parts of one directory's manifest on both sides of a comparison.

A piece that both sides have covers the same names on both, and so does what lies between two
starts that both sides have: only a few pieces are held at a time, and equal ones are not read.
"""

from collections.abc import Iterator
from typing import NamedTuple

from huai_schema.codec.blocks import join_digests
from huai_schema.codec.lines import count_files
from huai_schema.codec.listing import Listing
from huai_schema.errors import FormatError
from huai_schema.layout.common_parts import Text, without_common_units
from huai_schema.layout.entry_limit import EntryLimit
from huai_schema.layout.manifest import InlineDirectory, Manifest, decode_manifest
from huai_schema.layout.own_directory import MANIFEST, OwnDirectory, Piece
from huai_schema.layout.pieces import COLUMN_SUFFIX, PieceTree, unequal
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, show


class PieceRun(NamedTuple):
    """Neighbouring pieces of one side."""

    attributes: bytes
    """Of the directory, if its first piece is among them; empty if not."""
    leaves: bytes
    digests: bytes
    inline: dict[bytes, InlineDirectory]
    """By raw name."""

    @classmethod
    def gather(cls, manifests: list[Manifest], place: str) -> "PieceRun":
        """Put the pieces together."""
        attributes = b"".join(manifest.attributes or b"" for manifest in manifests)
        inline: dict[bytes, InlineDirectory] = {}
        for manifest in manifests:
            for each in manifest.inline:
                if each.name in inline:
                    raise FormatError(f"{show(each.name)!r} is listed twice", place)
                inline[each.name] = each
        columns = [(count_files(manifest.leaves), manifest.digests) for manifest in manifests]
        leaves = b"".join(manifest.leaves for manifest in manifests)
        return cls(attributes, leaves, join_digests(columns), inline)

    def listing(self, path: RelPath) -> Listing:
        """The directory, as far as it lies in these pieces."""
        return Listing(path, self.attributes, self.leaves, self.digests)


class Side(NamedTuple):
    """A directory in one of the two snapshots."""

    snapshot: Snapshot
    directory: OwnDirectory
    limit: EntryLimit

    def text(self, key: bytes, piece: Piece, place: str) -> Text:
        """Read one piece, and count it."""
        found = self.snapshot.text(key, piece, place)
        own = found.text.startswith(b"./\t")  # the directory itself was counted before
        self.limit.spend(found.text.count(b"\n") - own, place)
        self.limit.spend_bytes(len(found.text) + len(found.column), place)
        return found


def changed_pieces(old: Side, new: Side) -> Iterator[tuple[PieceRun, PieceRun]]:
    """The unequal pieces of both sides, in runs that cover the same names on both."""
    place = show(old.directory.path)
    gone, added = _unequal_pieces(old, new, place)
    before: list[Text] = []
    after: list[Text] = []
    for old_key, new_key in _by_start(old.snapshot, gone, new.snapshot, added, place):
        if old_key and new_key and (before or after):
            yield _pair(before, after, place)
            before, after = [], []
        if old_key:
            before.append(old.text(old_key, gone[old_key], place))
        if new_key:
            after.append(new.text(new_key, added[new_key], place))
    yield _pair(before, after, place)


def _pair(before: list[Text], after: list[Text], place: str) -> tuple[PieceRun, PieceRun]:
    if len(before) == len(after) == 1:
        pair = without_common_units(before[0], after[0])
        before, after = [pair[0]] if pair[0].text else [], [pair[1]] if pair[1].text else []
    old = [decode_manifest(*text, place) for text in before]
    new = [decode_manifest(*text, place) for text in after]
    return PieceRun.gather(old, place), PieceRun.gather(new, place)


def _by_start(
    old: Snapshot, gone: dict[bytes, Piece], new: Snapshot, added: dict[bytes, Piece], place: str
) -> Iterator[tuple[bytes, bytes]]:
    """Keys of pieces that begin at one place, in the order of these; empty for none."""
    if gone.keys() == added.keys():
        # Equal keys are equal starts: both sides are cut at the same places.
        yield from zip(gone, gone, strict=True)
        return
    if len(gone) <= 1 and len(added) <= 1:
        # There is nothing to sort, so the pieces need not be read for their starts.
        yield next(iter(gone), b""), next(iter(added), b"")
        return
    starts: dict[tuple[int, bytes], tuple[bytes, bytes]] = {}
    for key, piece in gone.items():
        starts[old.order(key, piece, place)] = key, b""
    for key, piece in added.items():
        order = new.order(key, piece, place)
        starts[order] = starts.get(order, (b"", b""))[0], key
    for order in sorted(starts):
        yield starts[order]


def _unequal_pieces(
    old: Side, new: Side, place: str
) -> tuple[dict[bytes, Piece], dict[bytes, Piece]]:
    """The pieces of each side that the other has not."""
    here, there = old.directory, new.directory
    first_gone, first_added = {}, {}
    if here.manifest != there.manifest:
        first_gone, first_added = {MANIFEST: here.manifest}, {MANIFEST: there.manifest}
    old_trees = _piece_trees(old.snapshot, here, place)
    new_trees = _piece_trees(new.snapshot, there, place)
    gone, added = unequal(old_trees.texts, new_trees.texts)
    gone_columns, added_columns = unequal(old_trees.columns, new_trees.columns)
    columns = gone_columns.keys() | added_columns.keys()
    column_only = columns - gone.keys() - added.keys()
    gone |= old_trees.texts.look_up(column_only)
    added |= new_trees.texts.look_up(column_only)
    return (
        first_gone | old_trees.pieces(gone, gone_columns, columns, place),
        first_added | new_trees.pieces(added, added_columns, columns, place),
    )


class _PieceTrees(NamedTuple):
    """The two trees of pieces that one directory has."""

    texts: PieceTree
    columns: PieceTree

    def pieces(
        self,
        texts: dict[bytes, bytes],
        columns: dict[bytes, bytes],
        known: set[bytes],
        place: str,
    ) -> dict[bytes, Piece]:
        """Pieces from texts and columns; those not `known` to differ are looked up."""
        columns = columns | self.columns.look_up(texts.keys() - known)
        if not columns.keys() <= texts.keys():
            raise FormatError("a digest column without its manifest", place)
        return {key: Piece(oid, columns.get(key)) for key, oid in texts.items()}


def _piece_trees(snapshot: Snapshot, directory: OwnDirectory, place: str) -> _PieceTrees:
    return _PieceTrees(
        PieceTree(snapshot.reader, directory.pieces, place),
        PieceTree(snapshot.reader, directory.piece_digests, place, COLUMN_SUFFIX),
    )
