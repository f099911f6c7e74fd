"""Damaged repositories give a FormatError or a tree, and nothing else."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_native._native import check_hardlinks
from huai_schema.diff.changes import Moved
from huai_schema.diff.diff import diff
from huai_schema.errors import FormatError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import rel_path
from tests.support.examples import examples
from tests.support.schema.damage import damaged
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.strategies import RANDOMS
from tests.support.schema.trees import changed_tree, random_tree, snapshot

SIZES = st.sampled_from([5, 100, 300, 1500])


def damage_repository(random: Random, objects: MemoryObjects) -> None:
    """Damage objects under their former ids, which readers must not trust."""
    ids = sorted(objects.objects)
    for oid in random.sample(ids, min(len(ids), random.choice([1, 1, 3]))):
        kind, data = objects.objects[oid]
        choice = random.random()
        if choice < 0.15:
            del objects.objects[oid]
        elif choice < 0.3:
            other = random.choice(ids)
            objects.objects[oid] = objects.objects.get(other, (kind, data))
        elif choice < 0.5 and kind == "tree" and len(data) > 40:
            # One id instead of another.
            at = data.index(b"\0") + 1
            objects.objects[oid] = kind, data[:at] + random.choice(ids) + data[at + 20 :]
        else:
            objects.objects[oid] = kind, damaged(data, random)


@examples(150)
@given(RANDOMS, SIZES)
def test_a_damaged_snapshot_is_read_or_refused(random: Random, size: int) -> None:
    objects = MemoryObjects()
    old = random_tree(random, size)
    sound = snapshot(old, objects)
    new = snapshot(changed_tree(random, old, 3), objects)
    hostile = objects.copy()
    damage_repository(random, hostile)
    limit = 20_000
    broken = Snapshot(hostile, new.tree, limit)
    refused: FormatError | None = None
    try:
        paths = [entry.path for entry in broken.entries()]
        check_hardlinks(*broken.arguments)
    except FormatError as error:
        refused = error
    else:
        assert len(set(paths)) == len(paths) <= limit
        assert [rel_path(path) for path in paths] == paths
    try:
        for difference in diff(sound, broken):
            rel_path(difference.new if isinstance(difference, Moved) else difference.path)
    except FormatError as error:
        refused = error
    assert refused is None or (refused.reason and refused.place)


@examples(25)
@given(RANDOMS, SIZES)
def test_no_missing_object_goes_unseen(random: Random, size: int) -> None:
    objects = MemoryObjects()
    read = snapshot(random_tree(random, size), objects)
    oid = random.choice(sorted(objects.objects))
    del objects.objects[oid]
    with pytest.raises(FormatError, match=oid.hex()):
        list(read.entries())
