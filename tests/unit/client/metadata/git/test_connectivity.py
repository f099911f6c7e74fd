"""Every missing object is detected, and no old one is read."""

import os
from pathlib import Path

import pytest

from huai_client.metadata.git.connectivity import check_connected, read_commit
from huai_client.metadata.git.limits import WorkLimit
from huai_client.metadata.git.objects import GitObject
from huai_native._native import Packs, PackWriter
from huai_schema.errors import FormatError, MissingObjectError
from tests.support.packs import PackObjects, full_record, pack, resolve


class Counting(PackObjects):
    """Records the objects that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[bytes] = []
        self.read_ids: list[bytes] = []

    def __contains__(self, oid: bytes) -> bool:
        self.read_ids.append(oid)
        return super().__contains__(oid)

    def find(self, oid: bytes) -> GitObject | None:
        self.read.append(oid)
        return super().find(oid)


class Packed(PackObjects):
    """Objects in packs, or else in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.packs = Packs(1 << 20)


def test_the_top_of_a_commit() -> None:
    objects = PackObjects()
    tree = objects.tree(m=objects.blob(b"x"))
    first = objects.commit(tree)
    second = objects.commit(tree, bytes.fromhex(first))
    assert read_commit(first, objects)[:2] == (tree, ())
    assert read_commit(second, objects)[:2] == (tree, (first,))


def test_what_is_no_commit() -> None:
    objects = PackObjects()
    for name in ("f" * 40, objects.blob(b"x").hex()):
        with pytest.raises(MissingObjectError, match="commit is missing"):
            read_commit(name, objects)
    with pytest.raises(FormatError, match="not a commit"):
        read_commit(objects.add("commit", b"parent " + b"1" * 40).hex(), objects)


def test_each_object_of_a_first_fetch_has_to_be_here() -> None:
    objects = PackObjects()
    blobs = [objects.blob(b"%d" % number) for number in range(4)]
    inner = objects.tree(a=blobs[0], b=blobs[1])
    top = objects.tree(m=blobs[2], t1=inner, t2=objects.tree(c=blobs[3], t=inner))
    check_connected(top, [], objects)
    for oid in [oid for oid in objects.objects if oid != top]:
        lost = PackObjects()
        lost.objects = {each: found for each, found in objects.objects.items() if each != oid}
        with pytest.raises(MissingObjectError, match=oid.hex()):
            check_connected(top, [], lost)
        commit = bytes.fromhex(lost.commit(top))
        records = [full_record(objects.objects[oid].data, objects.objects[oid].kind)]
        assert resolve(pack(records), lost, target=(commit, [])).keys() == {oid}
        with pytest.raises(MissingObjectError, match=oid.hex()):
            resolve(pack([]), lost, target=(commit, []))


def test_what_a_complete_snapshot_has_in_its_place_is_not_read() -> None:
    objects = Counting()
    same = objects.tree(**{f"b{number}": objects.blob(b"%d" % number) for number in range(9)})
    old = objects.tree(tsame=same, tother=objects.tree(a=objects.blob(b"1")))
    new = objects.tree(tsame=same, tother=objects.tree(a=objects.blob(b"2")))
    objects.read.clear()
    check_connected(new, [old], objects)
    assert same not in objects.read
    assert len(objects.read) == 4


def test_what_moved_is_looked_at() -> None:
    # The commit was complete before, but only objects at the same path are trusted.
    objects = PackObjects()
    inner = objects.tree(a=objects.blob(b"1"))
    old, new = objects.tree(tone=inner), objects.tree(ttwo=inner)
    check_connected(new, [old], objects)
    del objects.objects[objects.blob(b"1")]
    with pytest.raises(MissingObjectError):
        check_connected(new, [old], objects)


def test_a_tree_that_names_one_subtree_many_times_is_walked_once() -> None:
    objects = Counting()
    tree = objects.tree(m=objects.blob(b"x"))
    for _ in range(60):
        tree = objects.tree(ta=tree, tb=tree)
    objects.read.clear()
    check_connected(tree, [], objects)
    assert len(objects.read) == 61


def test_a_blob_in_the_place_of_a_tree() -> None:
    objects = PackObjects()
    wrong = objects.tree(tx=objects.blob(b"x"))
    with pytest.raises(MissingObjectError):
        check_connected(wrong, [], objects)


def test_a_damaged_tree() -> None:
    objects = PackObjects()
    with pytest.raises(FormatError, match="damaged git tree"):
        check_connected(objects.add("tree", b"40000 x"), [], objects)


def test_what_a_tree_names_without_number_is_noted_only_if_it_is_here() -> None:
    objects = Counting()
    leaf = objects.tree(m=objects.blob(b"x"))
    same = objects.add(
        "tree", b"".join(b"40000 %06d\0" % number + leaf for number in range(200_000))
    )
    listing = b"".join(b"40000 %06d\0%020d" % (number, number) for number in range(200_000))
    absent = objects.add("tree", listing)
    check_connected(objects.tree(tsame=same), [], objects)
    assert objects.read_ids.count(leaf) == 1
    objects.read_ids.clear()
    with pytest.raises(MissingObjectError):
        check_connected(objects.tree(tabsent=absent), [], objects)
    assert len(objects.read_ids) == 2


def test_looking_at_trees_is_work() -> None:
    objects = PackObjects()
    tree = objects.tree(m=objects.blob(b"x"))
    with pytest.raises(FormatError, match="unfolds to more"):
        check_connected(tree, [], objects, WorkLimit(10))


def test_an_absent_directory_is_missing(tmp_path: Path) -> None:
    """The empty directory that stands for it does not count."""
    objects = Packed()
    inner = objects.tree(m=objects.blob(b"x"))
    top = objects.tree(t=inner)
    writer = PackWriter(os.fsencode(tmp_path), b"temporary", threads=1)
    writer.write(objects.objects[top].kind, objects.objects[top].data)
    assert writer.finish()
    objects.packs.add(os.fsencode(tmp_path))
    objects.packs.set_absent([inner])
    with pytest.raises(MissingObjectError, match=inner.hex()):
        check_connected(top, [], objects)
