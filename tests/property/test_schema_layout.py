from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_native._native import write_tree
from huai_schema.entries import Directory
from huai_schema.paths import join
from tests.support.examples import examples
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.oracle import reference
from tests.support.schema.strategies import RANDOMS, trees
from tests.support.schema.trees import Tree, file, listings, random_tree, snapshot, tree_of

SIZES = st.sampled_from([1, 5, 100, 128, 129, 257, 600, 1500])


def assert_as_the_page_says(tree: Tree) -> None:
    objects = MemoryObjects()
    root = write_tree(listings(tree.values()), objects)
    expected_root, expected = reference(tree.values())
    assert objects.objects == expected
    assert root == expected_root


@given(trees())
def test_small_trees_are_laid_out_as_the_page_says(tree: Tree) -> None:
    assert_as_the_page_says(tree)


@examples(40)
@given(RANDOMS, SIZES)
def test_random_trees_are_laid_out_as_the_page_says(random: Random, size: int) -> None:
    assert_as_the_page_says(random_tree(random, size))


def test_a_radix_tree_of_pieces_is_as_the_page_says() -> None:
    # 30,000 lines make about 230 pieces: more than one tree holds.
    random = Random(1)
    names = {b"n%d" % random.randrange(10**9) for _ in range(30_000)}
    digest = b"d" * 32
    tree = tree_of(*(file(n, digest=digest if n[-1:] < b"3" else None) for n in names))
    assert_as_the_page_says(tree)


def test_pieces_are_cut_by_length_as_the_page_says() -> None:
    # Names whose CRC never requires a cut, in many lines first, then in long ones.
    names = [name for name in (b"%06d" % n for n in range(9000)) if _never_cuts(name)]
    many = tree_of(*(file(name) for name in names))
    long = tree_of(*(file(name, owner=b"\\" * 250, group=b"\n" * 250) for name in names[:1500]))
    assert_as_the_page_says(many)
    assert_as_the_page_says(long)


def _never_cuts(name: bytes) -> bool:
    from zlib import crc32

    return crc32(name) % 128 != 0


@pytest.mark.parametrize("count", [126, 127, 128, 129, 254, 255, 256, 257])
def test_thresholds_are_where_the_page_says(count: int) -> None:
    inside = [file(b"d/f%03d" % n) for n in range(count)]
    assert_as_the_page_says(tree_of(Directory(inside[0].path[:1], 0), *inside))  # type: ignore[arg-type]
    assert_as_the_page_says(tree_of(*(file(b"f%03d" % n) for n in range(count))))


@examples(25)
@given(RANDOMS, SIZES)
def test_the_order_in_which_entries_were_seen_does_not_matter(random: Random, size: int) -> None:
    tree = random_tree(random, size)
    entries = list(tree.values())
    random.shuffle(entries)
    assert write_tree(listings(entries), MemoryObjects()) == snapshot(tree).tree


@examples(40)
@given(RANDOMS, SIZES)
def test_each_path_is_looked_up(random: Random, size: int) -> None:
    tree = random_tree(random, size)
    read = snapshot(tree)
    assert {path: read.entry(path) for path in tree} == tree
    assert not any(read.leaf(path) for path in tree if isinstance(tree[path], Directory))
    assert not any(read.entry(join(path, b"!")) for path in tree)


@examples(40)
@given(RANDOMS, SIZES)
def test_random_trees_are_read_back(random: Random, size: int) -> None:
    tree = random_tree(random, size)
    read = snapshot(tree)
    assert {entry.path: entry for entry in read.entries()} == tree
    assert list(read.listings()) == list(listings(tree.values()))


@examples(25)
@given(RANDOMS, SIZES)
def test_any_directory_can_be_looked_up(random: Random, size: int) -> None:
    tree = random_tree(random, size)
    read = snapshot(tree)
    every = list(listings(tree.values()))
    for listing in random.sample(every, min(len(every), 10)):
        below = [e for e in every if (e.path + b"/").startswith(listing.path + b"/")]
        assert list(read.subtree(listing.path)) == (below if listing.path else every)
        assert read.directory(listing.path) == tree[listing.path]
    for path, entry in tree.items():
        if not isinstance(entry, Directory):
            assert read.listing(path) is None
            break


@examples(25)
@given(RANDOMS, SIZES)
def test_what_was_read_is_written_as_it_was(random: Random, size: int) -> None:
    read = snapshot(random_tree(random, size))
    assert write_tree(read.listings(), MemoryObjects()) == read.tree
