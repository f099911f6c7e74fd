"""The part that a filter fetches shows the same as the whole tree, and changes alike."""

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from huai_client.diff.selection import Selection, diff_selections
from huai_client.filters import Rules
from huai_native._native import ListingHashes, MissingObjects, Packs, PackWriter
from huai_schema.git.objects import Kind
from huai_schema.layout.snapshot import Snapshot
from tests.property.test_filters_selection import rules_for, selected_tree
from tests.support.examples import examples
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.strategies import RANDOMS
from tests.support.schema.trees import changed_tree, random_tree, replay, same, snapshot


class Part:
    """Packs with the objects that were missing, as a client fetches them."""

    def __init__(self, folder: Path, rules: Rules) -> None:
        self._folder = os.fsencode(folder)
        self._rules = rules
        self._absent: set[bytes] = set()
        self.packs = Packs(1 << 20)
        self.packs.add(self._folder)

    def read(self, oid: bytes, kind: Kind) -> bytes:
        """Return the content of an object (`ObjectReader`)."""
        item = self.packs.find(oid)
        assert item is not None
        assert item[0] == kind
        return item[1]

    def fetch(self, source: Snapshot, objects: MemoryObjects, bases: Sequence[bytes]) -> Snapshot:
        """Copy what is missing of `source`, and return the snapshot of it."""
        search = MissingObjects(self.packs, source.tree, bases, self._rules.table, 10_000)
        while missing := search.next():
            writer = PackWriter(self._folder, b"temporary", threads=1)
            for oid in missing:
                writer.write(*objects.objects[oid])
            assert writer.finish()
        self._absent.update(search.absent)
        self.packs.set_absent([tree for tree in self._absent if tree not in self.packs])
        return Snapshot(self, source.tree)


@examples(50)
@given(RANDOMS, st.data())
def test_a_part_is_as_the_whole(random: Random, data: st.DataObject) -> None:
    tree = random_tree(random, random.randrange(1, 600))
    other = changed_tree(random, tree, random.randrange(8))
    rules = data.draw(rules_for(tree))
    objects = MemoryObjects()
    first, second = snapshot(tree, objects), snapshot(other, objects)
    with TemporaryDirectory() as folder:
        part = Part(Path(folder), rules)
        past = Selection(part.fetch(first, objects, ()), rules)
        target = Selection(part.fetch(second, objects, [first.tree]), rules)
        for selection, source in ((past, first), (target, second)):
            assert [*selection.entries()] == [*Selection(source, rules).entries()]
        steps = [*diff_selections(past, target)]
        # A search without bases names all that is left out of one commit.
        search = MissingObjects(part.packs, second.tree, (), rules.table, 10_000)
        assert not search.next()
        hashes = ListingHashes(b"")
        listing = hashes.of_tree(second.tree, objects)
        stated = hashes.records(b"".join(search.absent))
        assert ListingHashes(b"", stated).of_tree(second.tree, part) == listing
    assert same(replay(selected_tree(tree, rules), steps), selected_tree(other, rules))
