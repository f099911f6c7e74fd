"""Nothing that is missing goes unnoticed; nothing that is old is read."""

import pytest

from huai_client.metadata.git.connectivity import check_connected, read_commit
from huai_client.metadata.git.limits import Work
from huai_client.metadata.git.objects import GitObject, MissingObjectError, WithReceived
from huai_native._native import ResolvedPack
from huai_schema.errors import FormatError
from tests.support.packs import Held, pack, resolved, whole


class Counting(Held):
    """Notes what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[bytes] = []
        self.asked: list[bytes] = []

    def __contains__(self, oid: bytes) -> bool:
        self.asked.append(oid)
        return super().__contains__(oid)

    def find(self, oid: bytes) -> GitObject | None:
        self.read.append(oid)
        return super().find(oid)


def test_the_top_of_a_commit() -> None:
    held = Held()
    tree = held.tree(m=held.blob(b"x"))
    first = held.commit(tree)
    second = held.commit(tree, bytes.fromhex(first))
    assert read_commit(first, held) == (tree, False)
    assert read_commit(second, held) == (tree, True)


def test_what_is_no_commit() -> None:
    held = Held()
    for name in ("f" * 40, held.blob(b"x").hex(), held.add("commit", b"parent " + b"1" * 40).hex()):
        with pytest.raises(MissingObjectError, match="no such commit"):
            read_commit(name, held)


def test_each_object_of_a_first_fetch_has_to_be_here() -> None:
    held = Held()
    blobs = [held.blob(b"%d" % number) for number in range(4)]
    inner = held.tree(a=blobs[0], b=blobs[1])
    top = held.tree(m=blobs[2], t1=inner, t2=held.tree(c=blobs[3], t=inner))
    check_connected(top, [], held)
    for oid in [oid for oid in held.objects if oid != top]:
        lost = Held()
        lost.objects = {each: found for each, found in held.objects.items() if each != oid}
        with pytest.raises(MissingObjectError, match=oid.hex()):
            check_connected(top, [], lost)
        received = resolved(pack([whole(held.objects[oid].data, held.objects[oid].kind)]))
        assert isinstance(received, ResolvedPack)
        check_connected(top, [], WithReceived(received, lost))


def test_what_a_complete_snapshot_has_in_its_place_is_not_read() -> None:
    held = Counting()
    same = held.tree(**{f"b{number}": held.blob(b"%d" % number) for number in range(9)})
    old = held.tree(tsame=same, tother=held.tree(a=held.blob(b"1")))
    new = held.tree(tsame=same, tother=held.tree(a=held.blob(b"2")))
    held.read.clear()
    check_connected(new, [old], held)
    assert same not in held.read
    assert len(held.read) == 4


def test_what_moved_is_looked_at() -> None:
    # It was complete where it was, but only what stands in the same place is believed.
    held = Held()
    inner = held.tree(a=held.blob(b"1"))
    old, new = held.tree(tone=inner), held.tree(ttwo=inner)
    check_connected(new, [old], held)
    del held.objects[held.blob(b"1")]
    with pytest.raises(MissingObjectError):
        check_connected(new, [old], held)


def test_a_tree_that_names_one_subtree_many_times_is_walked_once() -> None:
    held = Counting()
    tree = held.tree(m=held.blob(b"x"))
    for _ in range(60):
        tree = held.tree(ta=tree, tb=tree)
    held.read.clear()
    check_connected(tree, [], held)
    assert len(held.read) == 61


def test_a_blob_in_the_place_of_a_tree() -> None:
    held = Held()
    wrong = held.tree(tx=held.blob(b"x"))
    with pytest.raises(MissingObjectError):
        check_connected(wrong, [], held)


def test_a_damaged_tree() -> None:
    held = Held()
    with pytest.raises(FormatError, match="damaged git tree"):
        check_connected(held.add("tree", b"40000 x"), [], held)


def test_what_a_tree_names_without_number_is_noted_only_if_it_is_here() -> None:
    held = Counting()
    leaf = held.tree(m=held.blob(b"x"))
    same = held.add("tree", b"".join(b"40000 %06d\0" % number + leaf for number in range(200_000)))
    gone = b"".join(b"40000 %06d\0%020d" % (number, number) for number in range(200_000))
    absent = held.add("tree", gone)
    check_connected(held.tree(tsame=same), [], held)
    assert held.asked.count(leaf) == 1
    held.asked.clear()
    with pytest.raises(MissingObjectError):
        check_connected(held.tree(tabsent=absent), [], held)
    assert len(held.asked) == 2


def test_looking_at_trees_is_work() -> None:
    held = Held()
    tree = held.tree(m=held.blob(b"x"))
    with pytest.raises(FormatError, match="unfolds to more"):
        check_connected(tree, [], held, Work(10))
