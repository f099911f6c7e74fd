from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from huai_schema.diff.changes import Change, Moved
from huai_schema.diff.diff import diff
from huai_schema.paths import RelPath
from tests.support.examples import examples
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.strategies import RANDOMS, trees
from tests.support.schema.trees import (
    Tree,
    changed_tree,
    directory,
    file,
    files,
    insert,
    random_tree,
    replay,
    same,
    settle_links,
    snapshot,
    tree_of,
)

SIZES = st.sampled_from([1, 5, 100, 129, 257, 600, 1500])
STEPS = st.sampled_from([0, 1, 1, 3, 30])


def assert_replays(old: Tree, new: Tree) -> None:
    objects = MemoryObjects()
    differences = list(diff(snapshot(old, objects), snapshot(new, objects)))
    assert same(replay(old, differences), new)
    for change in differences:
        if isinstance(change, Change) and change.old and change.new:
            assert change.attributes


@given(trees(), trees())
def test_replaying_a_diff_of_unrelated_trees_gives_the_new_one(old: Tree, new: Tree) -> None:
    assert_replays(old, new)


@examples(80)
@given(RANDOMS, SIZES, STEPS)
def test_replaying_a_diff_gives_the_new_tree(random: Random, size: int, steps: int) -> None:
    old = random_tree(random, size)
    assert_replays(old, changed_tree(random, old, steps))


@examples(25)
@given(RANDOMS, SIZES)
def test_equal_trees_read_nothing(random: Random, size: int) -> None:
    objects = MemoryObjects()
    tree = random_tree(random, size)
    one, other = snapshot(tree, objects), snapshot(tree, objects)
    assert not list(diff(one, other))
    assert not objects.read_ids


def own_tree(random: Random) -> Tree:
    """Draw entries of all shapes without digests, no two of them equal by chance."""
    entries = [
        directory(b"small"),
        directory(b"large"),
        directory(b"large/deep"),
        directory(b"cut"),
    ]
    unique = iter(range(10**6))
    for where, count in ((b"small", 20), (b"large", 200), (b"large/deep", 150), (b"cut", 9000)):
        entries += [each._replace(mtime=next(unique)) for each in files(where, count)]  # type: ignore[misc]
    for entry in random.sample(entries, 3):
        entries.append(file(b"top%d" % next(unique), mtime=entry.mtime))  # type: ignore[arg-type]
    return tree_of(*entries)


@examples(20)
@given(RANDOMS, st.sampled_from([1, 2, 5]))
def test_nothing_that_both_sides_have_is_read(random: Random, edits: int) -> None:
    old_objects, new_objects = MemoryObjects(), MemoryObjects()
    old = own_tree(random)
    new = dict(old)
    for path in random.sample(sorted(old)[1:], edits):
        new[path] = old[path]._replace(mtime=-1)
    before, after = snapshot(old, old_objects), snapshot(new, new_objects)
    shared = old_objects.objects.keys() & new_objects.objects.keys()
    differences = list(diff(before, after))
    assert len(differences) == edits
    assert shared
    assert not shared & set(old_objects.read_ids + new_objects.read_ids)


PLACES = st.sampled_from([b"old", b"new", b"a/old", b"a/b/new", b"small"])


@examples(60)
@given(RANDOMS, st.sampled_from([130, 300, 1500]), STEPS, st.lists(PLACES, min_size=2))
def test_renamed_trees_with_changes_inside(
    random: Random, size: int, steps: int, places: list[bytes]
) -> None:
    """Use each place in turn as the old and the new place of another tree."""
    old, new = tree_of(), tree_of()
    for before, after in pairwise(places):
        inside = random_tree(random, size)
        inside_now = changed_tree(random, inside, steps)
        for tree, where, part in ((old, before, inside), (new, after, inside_now)):
            if RelPath(where) not in tree:
                insert(tree, where, part)
    settle_links(old)
    settle_links(new)
    assert_replays(old, new)


@examples(20)
@given(RANDOMS, st.sampled_from([150, 1000, 5000]), st.integers(0, 3))
def test_a_renamed_tree_with_few_changes_moves(random: Random, size: int, edits: int) -> None:
    objects = MemoryObjects()
    inside = tree_of(*files(b"", size))
    before, after = tree_of(), tree_of()
    insert(before, b"a/old", inside)
    for path in random.sample(sorted(inside), edits):
        inside[path] = inside[path]._replace(mtime=-1)
    insert(after, b"b/new", inside)
    differences = list(diff(snapshot(before, objects), snapshot(after, objects)))
    assert Moved(RelPath(b"a/old"), RelPath(b"b/new")) in differences
    # Their directories were removed and added.
    assert len(differences) == edits + 3
