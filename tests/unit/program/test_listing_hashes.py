"""Listing hashes are cached, and right even if the cache is damaged."""

from pathlib import Path

import pytest

from huai_program.listing_hashes import listing_hash, prove_listing
from huai_schema.codec.descriptor import Descriptor, write_root
from huai_schema.errors import FormatError
from tests.support.schema import listing_hash as oracle
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import Tree, file, files, snapshot, tree_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "listing-hashes"


def root_of(tree: Tree, objects: MemoryObjects) -> bytes:
    return write_root(Descriptor("m"), snapshot(tree, objects).tree, objects)


def large(changed: int = 0) -> Tree:
    tree = tree_of(*files(b"", 20_000))
    entry = files(b"", 1)[0]
    tree[entry.path] = file(entry.path, changed)
    return tree


def test_a_small_change_costs_little(path: Path) -> None:
    objects = MemoryObjects()
    listing_hash(path, root_of(large(), objects), objects)
    all_reads = len(objects.read_ids)
    for size in range(1, 4):
        root = root_of(large(size), objects)
        objects.read_ids.clear()
        listing = listing_hash(path, root, objects)
        # The piece, and the trees above it twice: on the way down and up.
        assert len(objects.read_ids) < 12 < all_reads / 10
        assert listing == oracle.listing_hash(root, objects)
        objects.read_ids.clear()
        assert listing_hash(path, root, objects) == listing
        assert objects.read_ids == []


def test_a_wrong_hash_that_was_kept_refuses_nothing(path: Path) -> None:
    objects = MemoryObjects()
    root = root_of(large(), objects)
    right = listing_hash(path, root, objects)
    lying = objects.copy()
    for oid, (kind, data) in objects.objects.items():
        if kind == "blob":
            lying.objects[oid] = kind, data + b"."
    path.unlink()
    assert listing_hash(path, root, lying) != right
    prove_listing(path, root, objects, right)
    assert listing_hash(path, root, objects) == right
    with pytest.raises(FormatError, match="not the signed one"):
        prove_listing(path, root, lying, bytes(32))


def test_a_file_that_grew_begins_anew(path: Path) -> None:
    objects = MemoryObjects()
    small = tree_of(*files(b"", 10))
    first = listing_hash(path, root_of(small, objects), objects)
    for number in range(6_000):
        tree = tree_of(*files(b"", 10), file(b"more", number))
        listing_hash(path, root_of(tree, objects), objects)
        if path.stat().st_size < 2000 and number:
            break
    assert path.stat().st_size < 2000
    assert listing_hash(path, root_of(small, objects), objects) == first
