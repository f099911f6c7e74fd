"""A tree that is scanned in parts gets the objects of one scan, wherever it is cut."""

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from huai_native import _native
from huai_native._native import ListingHashes, TreeReader, relink
from huai_schema.codec.escaping import unescape
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, ancestors, is_within
from huai_server.commit.shard_plan import plan_shards
from huai_server.commit.shards import parted_groups
from huai_server.commit.tree_reader import WHOLE, Part, ReadPart
from huai_server.config.tables import Module, ModuleEngine
from tests.support.schema.memory import MemoryObjects

NAMES = [b"a", b"a-b", b"b", b"c\n", b"z"]
Directory = st.lists(st.sampled_from(NAMES), max_size=4).map(b"/".join)


class Planted(NamedTuple):
    files: list[tuple[bytes, int]]
    """Directories with the number of their files: around the size that is inlined, or small."""
    links: list[tuple[bytes, int]]
    """Directories that get another name of an earlier file."""
    cuts: list[bytes]


planted = st.builds(
    Planted,
    st.lists(st.tuples(Directory, st.sampled_from([0, 1, 3, 126, 128, 260])), max_size=8),
    st.lists(st.tuples(Directory, st.integers(0, 1 << 16)), max_size=12),
    st.lists(Directory.filter(bool), max_size=5),
)


def plant(root: bytes, tree: Planted) -> None:
    files = [os.path.join(root, b"first")]
    Path(os.fsdecode(files[0])).write_bytes(b"x")
    for directory, count in tree.files:
        os.makedirs(os.path.join(root, directory), exist_ok=True)
        for number in range(count):
            files.append(os.path.join(root, directory, b"f%d" % number))
            with open(files[-1], "wb") as file:
                file.write(b"x" * (number % 7))
    for number, (directory, source) in enumerate(tree.links):
        os.makedirs(os.path.join(root, directory), exist_ok=True)
        os.link(files[source % len(files)], os.path.join(root, directory, b"l%d" % number))


class Read(NamedTuple):
    part: ReadPart
    pairs: set[tuple[bytes, bytes]]


def read(root: bytes, objects: MemoryObjects, part: Part = WHOLE) -> Read:
    pairs = bytearray()
    reader = TreeReader(
        root, ([], 1, True, True, None), None, None, lambda _, cause: ValueError(cause)
    )
    lent = part.objects.arguments if part.objects else None
    mounts: tuple[set[bytes], bool, bool] = (set(), False, False)
    done = reader.read_whole(None, mounts, pairs.extend, objects, (part.top, part.shards, lent))
    lines = (line.partition(b"\t") for line in bytes(pairs).split(b"\n") if line)
    return Read(done, {(unescape(leader), unescape(member)) for leader, _, member in lines})


def outermost(paths: list[bytes]) -> list[bytes]:
    unique = sorted(set(paths))
    return [each for each in unique if not any(is_within(each, top) for top in {*unique} - {each})]


def disjoint(cuts: list[bytes], root: bytes) -> list[bytes]:
    return outermost([cut for cut in cuts if os.path.isdir(os.path.join(root, cut))])


def combined(root: bytes, objects: MemoryObjects, cuts: list[bytes]) -> tuple[bytes, list[Read]]:
    shards: list[tuple[bytes, tuple[int, int], tuple[bytes, int] | None]] = []
    reads: list[Read] = []
    for cut in cuts:
        reads.append(read(root, objects, Part(cut, [], None)))
        tree, (totals, _), _, _, (view, _, _) = reads[-1].part
        shards.append((cut, view, (tree, sum(totals[:3]))))
    reads.append(read(root, objects, Part(b"", shards, Snapshot(objects, b"\0" * 20))))
    tree = reads[-1].part[0]
    open_groups = [group for each in reads for group in each.part[4][1]]
    groups = parted_groups(open_groups, (pair for each in reads for pair in each.pairs))
    if not groups:
        return tree, reads
    tree, pairs = relink((objects, tree, 1 << 20), groups, objects)
    lines = (line.partition(b"\t") for line in pairs.split(b"\n") if line)
    reads.append(Read(reads[-1].part, {(unescape(one), unescape(two)) for one, _, two in lines}))
    return tree, reads


@given(planted)
def test_parts_make_the_tree_of_one_scan(tree: Planted) -> None:
    with tempfile.TemporaryDirectory(prefix="h") as folder:
        root = os.fsencode(folder)
        plant(root, tree)
        objects = MemoryObjects()
        scan = read(root, objects)
        alone, reads = combined(root, objects, disjoint(tree.cuts, root))
        assert alone == scan.part[0]
        hashes = ListingHashes(b"")
        for read_part in reads:  # those of the shards are known when the tree is hashed
            hashes.of_tree(read_part.part[0], objects)
        assert hashes.of_tree(alone, objects) == ListingHashes(b"").of_tree(alone, objects)
        parts = reads if len(reads) == len(disjoint(tree.cuts, root)) + 1 else reads[:-1]
        totals = [
            sum(numbers) for numbers in zip(*(each.part[1][0] for each in parts), strict=True)
        ]
        assert totals == list(scan.part[1][0])
        # Further pairs are of first names in a shard, and harmless.
        assert scan.pairs <= set().union(*(each.pairs for each in reads))


def entries_below(snapshot: Snapshot, path: RelPath) -> int:
    return sum(1 + listing.leaves.count(b"\n") for listing in snapshot.subtree(path))


@given(
    planted,
    st.integers(1, 400),
    st.lists(Directory.filter(bool), max_size=3).map(outermost),
    st.data(),
)
def test_a_plan_has_labelled_directories_and_large_ones_that_are_not_too_large(
    tree: Planted, limit: int, labels: list[bytes], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(prefix="h") as folder:
        root = os.fsencode(folder)
        plant(root, tree)
        objects = MemoryObjects()
        snapshot = Snapshot(objects, read(root, objects).part[0])
        where = dict.fromkeys(map(os.fsdecode, labels), "node")
        module = Module(folder, engine=ModuleEngine(shard_entries=limit, where=where))
        labelled = disjoint(labels, root)
        first, planned = (
            plan_shards(past, module, Path(folder) / "none") for past in (None, snapshot)
        )
        for plan in (first, planned):
            assert sorted(plan) == disjoint(list(plan), root)
            assert {*labelled} <= {*plan}
            assert combined(root, objects, list(plan))[0] == snapshot.tree
        for path, entries in planned.items():
            assert entries == entries_below(snapshot, RelPath(path))
            assert entries <= limit or path in labelled
        # What is known of other trees makes no difference.
        tops = [b"", *planned, *(above for path in labelled for above in ancestors(path))]
        paths = map(RelPath, data.draw(st.lists(st.sampled_from(tops), max_size=3)))
        trees = {path: snapshot.own_tree(path) for path in paths}
        counts = {tree: entries_below(snapshot, path) for path, tree in trees.items() if tree}
        again = _native.plan_shards(snapshot.arguments, limit, counts, labelled)
        assert dict(again) == planned
