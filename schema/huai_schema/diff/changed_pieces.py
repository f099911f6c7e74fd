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
from huai_schema.layout.budget import Budget
from huai_schema.layout.common_parts import Text, trim_units
from huai_schema.layout.manifest import Group, Manifest, decode_manifest
from huai_schema.layout.own_directory import MANIFEST, OwnDirectory, Piece
from huai_schema.layout.pieces import COLUMN_SUFFIX, PieceTree, unequal
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, show


class Window(NamedTuple):
    """Neighbouring pieces of one side."""

    attributes: bytes
    """Of the directory, if its first piece is among them; empty if not."""
    leaves: bytes
    digests: bytes
    groups: dict[bytes, Group]
    """By raw name."""

    @classmethod
    def gather(cls, manifests: list[Manifest], place: str) -> "Window":
        """Put the pieces together."""
        attributes = b"".join(manifest.attributes or b"" for manifest in manifests)
        groups: dict[bytes, Group] = {}
        for manifest in manifests:
            for group in manifest.groups:
                if group.name in groups:
                    raise FormatError(f"{show(group.name)!r} is listed twice", place)
                groups[group.name] = group
        columns = [(count_files(manifest.leaves), manifest.digests) for manifest in manifests]
        leaves = b"".join(manifest.leaves for manifest in manifests)
        return cls(attributes, leaves, join_digests(columns), groups)

    def listing(self, path: RelPath) -> Listing:
        """The directory, as far as it lies in the window."""
        return Listing(path, self.attributes, self.leaves, self.digests)


class OneSide(NamedTuple):
    """A directory in one of the two snapshots."""

    snapshot: Snapshot
    directory: OwnDirectory
    budget: Budget

    def text(self, key: bytes, piece: Piece, place: str) -> Text:
        """Read one piece, and count it."""
        found = self.snapshot.text(key, piece, place)
        own = found.text.startswith(b"./\t")  # the directory itself was counted before
        self.budget.spend(found.text.count(b"\n") - own, place)
        self.budget.spend_bytes(len(found.text) + len(found.column), place)
        return found


def windows(old: OneSide, new: OneSide) -> Iterator[tuple[Window, Window]]:
    """The unequal pieces of both sides, in runs that cover the same names on both."""
    place = show(old.directory.path)
    gone, added = _unequal_pieces(old, new, place)
    before: list[Text] = []
    after: list[Text] = []
    for old_key, new_key in _by_start(old.snapshot, gone, new.snapshot, added, place):
        if old_key and new_key and (before or after):
            yield _window(before, after, place)
            before, after = [], []
        if old_key:
            before.append(old.text(old_key, gone[old_key], place))
        if new_key:
            after.append(new.text(new_key, added[new_key], place))
    yield _window(before, after, place)


def _window(before: list[Text], after: list[Text], place: str) -> tuple[Window, Window]:
    if len(before) == len(after) == 1:
        pair = trim_units(before[0], after[0])
        before, after = [pair[0]] if pair[0].text else [], [pair[1]] if pair[1].text else []
    old = [decode_manifest(*text, place) for text in before]
    new = [decode_manifest(*text, place) for text in after]
    return Window.gather(old, place), Window.gather(new, place)


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
    old: OneSide, new: OneSide, place: str
) -> tuple[dict[bytes, Piece], dict[bytes, Piece]]:
    """The pieces of each side that the other has not."""
    here, there = old.directory, new.directory
    first_gone, first_added = {}, {}
    if here.manifest != there.manifest:
        first_gone, first_added = {MANIFEST: here.manifest}, {MANIFEST: there.manifest}
    old_sides = _sides(old.snapshot, here, place)
    new_sides = _sides(new.snapshot, there, place)
    gone, added = unequal(old_sides.texts, new_sides.texts)
    gone_columns, added_columns = unequal(old_sides.columns, new_sides.columns)
    columns = gone_columns.keys() | added_columns.keys()
    column_only = columns - gone.keys() - added.keys()
    gone |= old_sides.texts.look_up(column_only)
    added |= new_sides.texts.look_up(column_only)
    return (
        first_gone | old_sides.pieces(gone, gone_columns, columns, place),
        first_added | new_sides.pieces(added, added_columns, columns, place),
    )


class _Sides(NamedTuple):
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


def _sides(snapshot: Snapshot, directory: OwnDirectory, place: str) -> _Sides:
    return _Sides(
        PieceTree(snapshot.reader, directory.pieces, place),
        PieceTree(snapshot.reader, directory.piece_digests, place, COLUMN_SUFFIX),
    )
