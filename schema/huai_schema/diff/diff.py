"""Comparing two snapshots (FORMAT.md, "Comparing").

Pure and streaming; driven by unequal ids: what has one id on both sides is never read.  The
order of what is yielded is not defined.  A path that turned from a directory into something
else, or back, is yielded twice: as gone and as new (`changes.joined` brings them together).
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from huai_schema.codec.listing import Listing
from huai_schema.diff.changed_pieces import Side, changed_pieces
from huai_schema.diff.changes import Change, Moved
from huai_schema.diff.listing_diff import all_of, compare_listings
from huai_schema.diff.moves import Moves
from huai_schema.layout.entry_limit import EntryLimit
from huai_schema.layout.manifest import InlineDirectory
from huai_schema.layout.snapshot import Snapshot, listing_of
from huai_schema.paths import ROOT, RelPath, join, path_order, show

Difference: TypeAlias = Change | Moved


class _Tree(NamedTuple):
    """An own directory that stands on one side only."""

    path: RelPath
    oid: bytes


class _Pair(NamedTuple):
    path: RelPath
    old: bytes
    new: bytes


def diff(old: Snapshot, new: Snapshot) -> Iterator[Difference]:
    """Everything that takes `old` to `new`."""
    return _Comparison(old, new).run()


class _Comparison:
    """The state of one comparison: what is still to be looked at."""

    def __init__(self, old: Snapshot, new: Snapshot) -> None:
        self._old = old
        self._new = new
        self._old_limit = EntryLimit(old.limit)
        self._new_limit = EntryLimit(new.limit)
        self._pairs: list[_Pair] = []
        self._gone: list[_Tree] = []
        self._added: list[_Tree] = []

    def run(self) -> Iterator[Difference]:
        if self._old.tree == self._new.tree:
            return
        self._pairs.append(_Pair(ROOT, self._old.tree, self._new.tree))
        while self._pairs:
            yield from self._own_directories(self._pairs.pop())
        moves = self._moves()
        yield from self._arrived(moves)
        yield from self._left(moves)

    def _own_directories(self, pair: _Pair) -> Iterator[Change]:
        """One directory that has its own tree on both sides, without such subdirectories."""
        self._old_limit.spend(1, show(pair.path))
        self._new_limit.spend(1, show(pair.path))
        old = self._old.own_directory(pair.path, pair.old)
        new = self._new.own_directory(pair.path, pair.new)
        self._old_limit.spend_trees(len(old.children), show(pair.path))
        self._new_limit.spend_trees(len(new.children), show(pair.path))
        here = Side(self._old, old, self._old_limit)
        there = Side(self._new, new, self._new_limit)
        inline_old: set[bytes] = set()
        inline_new: set[bytes] = set()
        for before, after in changed_pieces(here, there):
            inline_old |= before.inline.keys()
            inline_new |= after.inline.keys()
            yield from compare_listings(before.listing(pair.path), after.listing(pair.path))
            for name in before.inline.keys() | after.inline.keys():
                was, now = before.inline.get(name), after.inline.get(name)
                have = self._one_side(here, name, was, now)
                want = self._one_side(there, name, now, was)
                yield from _compare_subtrees(have, want)
        for name in old.children.keys() | new.children.keys():
            path = join(pair.path, name)
            old_id, new_id = old.children.get(name), new.children.get(name)
            if old_id and new_id:
                if old_id != new_id:
                    self._pairs.append(_Pair(path, old_id, new_id))
            elif old_id and name not in inline_new:
                self._gone.append(_Tree(path, old_id))
            elif new_id and name not in inline_old:
                self._added.append(_Tree(path, new_id))

    def _one_side(
        self,
        side: Side,
        name: bytes,
        inline: InlineDirectory | None,
        other: InlineDirectory | None,
    ) -> Iterator[Listing]:
        """A subdirectory that stands in a manifest on at least one side; nothing if it is not.

        Where it has a tree of its own, the directories below that have one too and are not in
        the `other` side's manifest stand on this side alone, and may have moved.
        """
        path = side.directory.path
        if inline is not None:
            yield from (listing_of(path, block) for block in inline.blocks)
            return
        if name not in side.directory.children:
            return
        limit = side.limit
        alone = self._gone if limit is self._old_limit else self._added
        inlined = {listing_of(path, block).path for block in (other.blocks if other else ())}
        levels = [side.snapshot.level(join(path, name), side.directory.children[name], limit)]
        while levels:
            step = next(levels[-1], None)
            if step is None:
                levels.pop()
            elif isinstance(step, Listing):
                yield step
            elif step[0] in inlined:
                levels.append(side.snapshot.level(*step, limit))
            else:
                alone.append(_Tree(*step))

    def _moves(self) -> Moves:
        """What left and may have arrived elsewhere: every own directory; reads no manifest."""
        moves = Moves()
        pending = list(self._gone) if self._added else []
        limit = EntryLimit(self._old.limit)
        while pending:
            tree = pending.pop()
            limit.spend(1, show(tree.path))
            moves.offer(tree.path, tree.oid)
            children = self._old.own_directory(tree.path, tree.oid).children
            limit.spend_trees(len(children), show(tree.path))
            pending += [_Tree(join(tree.path, name), oid) for name, oid in children.items()]
        return moves

    def _arrived(self, moves: Moves) -> Iterator[Difference]:
        pending = list(self._added)
        while pending:
            tree = pending.pop()
            source = moves.take(tree.oid)
            if source is not None:
                yield Moved(source, tree.path)
                continue
            for step in self._new.level(tree.path, tree.oid, self._new_limit):
                if isinstance(step, Listing):
                    yield from all_of(step, gone=False)
                else:
                    pending.append(_Tree(*step))

    def _left(self, moves: Moves) -> Iterator[Change]:
        pending = list(self._gone)
        while pending:
            tree = pending.pop()
            if moves.has_taken(tree.path):
                continue
            for step in self._old.level(tree.path, tree.oid, self._old_limit):
                if isinstance(step, Listing):
                    yield from all_of(step, gone=True)
                else:
                    pending.append(_Tree(*step))


def _compare_subtrees(have: Iterator[Listing], want: Iterator[Listing]) -> Iterator[Change]:
    """Two iterations in tree order, merged."""
    old, new = next(have, None), next(want, None)
    while old or new:
        if old and new and old.path == new.path:
            yield from compare_listings(old, new)
            old, new = next(have, None), next(want, None)
        elif new is None or (old and path_order(old.path) < path_order(new.path)):
            yield from compare_listings(old, None)
            old = next(have, None)
        else:
            yield from compare_listings(None, new)
            new = next(want, None)
