"""Handmade snapshots that each break one rule of FORMAT.md."""

import pytest

from huai_native._native import NameIndex, check_hardlinks
from huai_schema.diff.diff import diff
from huai_schema.errors import FormatError
from huai_schema.git.objects import TreeItem, encode_tree
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.oracle import piece_key
from tests.support.schema.trees import directory, file, snapshot, tree_of

OWN = b"./\t0\n"


class Forge:
    """A writer of arbitrary objects."""

    def __init__(self) -> None:
        self.objects = MemoryObjects()

    def blob(self, text: bytes) -> bytes:
        return self.objects.write("blob", text)

    def tree(self, blobs: dict[bytes, bytes], trees: dict[bytes, bytes] | None = None) -> bytes:
        items = [TreeItem(name, oid, is_tree=False) for name, oid in blobs.items()]
        items += [TreeItem(name, oid, is_tree=True) for name, oid in (trees or {}).items()]
        return self.objects.write("tree", encode_tree(items))

    def own(self, text: bytes, **children: bytes) -> bytes:
        items = {b"=" + name.encode(): oid for name, oid in children.items()}
        return self.tree({b"m": self.blob(text)}, items)

    def pieces(self, *texts: bytes, keys: list[bytes] | None = None) -> bytes:
        first, *rest = texts
        keys = keys or [piece_key(text.partition(b"\t")[0]) for text in rest]
        blobs = {key: self.blob(text) for key, text in zip(keys, rest, strict=True)}
        return self.tree({b"m": self.blob(first)}, {b"p": self.tree(blobs)} if blobs else {})

    def read(self, root: bytes, limit: int = 10_000) -> None:
        snapshot = Snapshot(self.objects, root, limit)
        assert list(snapshot.entries())
        check_hardlinks(*snapshot.arguments)

    def refused(self, root: bytes, reason: str, limit: int = 10_000) -> None:
        with pytest.raises(FormatError, match=reason) as caught:
            self.read(root, limit)
        assert caught.value.place


def test_what_the_forge_writes_can_be_sound() -> None:
    forge = Forge()
    child = forge.own(OWN + b"x\t1\t0\n")
    forge.read(forge.own(OWN + b"a\t1\t0\nd/\t0\ny\t1\t0\n", c=child, e=child))
    forge.read(forge.pieces(OWN + b"a\t1\t0\n", b"b\t1\t0\n", b"d/\t0\n"))
    forge.read(forge.pieces(OWN + b"a\t1\t0\nd/\t0\n", b"e/\t0\nx\t0\t0\n"))


def test_a_directory_needs_its_own_line() -> None:
    forge = Forge()
    forge.refused(forge.own(b"a\t1\t0\n"), "without its own line")
    forge.refused(forge.own(b"d/\t0\n"), "without its own line")
    forge.refused(forge.pieces(b"a\t1\t0\n"), "without its own line")


def test_a_piece_stands_under_the_key_of_its_start() -> None:
    forge = Forge()
    keys = [b"0" * 16]
    forge.refused(forge.pieces(OWN, b"b\t1\t0\n", keys=keys), "not named after its start")
    forge.refused(forge.pieces(OWN, OWN, keys=keys), "not named after its start")
    forge.refused(forge.pieces(OWN, OWN, keys=[piece_key(b"")]), "not named after its start")


def test_pieces_do_not_overlap() -> None:
    forge = Forge()
    overlap = forge.pieces(OWN + b"a\t1\t0\nc\t1\t0\n", b"b\t1\t0\n")
    forge.refused(overlap, "not sorted or not unique")
    forge.refused(forge.pieces(OWN, b"a\t1\t0\nd/\t0\n", b"b\t1\t0\n"), "after a subdirectory")
    forge.refused(forge.pieces(OWN, b"d/\t0\nf/\t0\n", b"e/\t0\n"), "out of order or repeated")


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_a_name_is_either_a_leaf_or_a_directory(count: int) -> None:
    forge = Forge()
    leaves = b"".join(b"%03d\t1\t0\n" % n for n in range(count))
    child = forge.own(OWN)
    for n in range(count):
        name = b"%03d" % n
        forge.refused(forge.own(OWN + leaves + name + b"/\t0\n"), "both a directory and a file")
        tree = forge.own(OWN + leaves, **{name.decode(): child})
        forge.refused(tree, "both a directory and a file")


@pytest.mark.parametrize("name", [".~tmp~", ".~TMP~"])
def test_metadata_cannot_list_the_staging_area(name: str) -> None:
    forge = Forge()
    child = forge.own(OWN)
    trees = (
        forge.own(OWN, **{name: child}),
        forge.own(OWN, d=forge.own(OWN, **{name: child})),
        forge.own(OWN + f"{name}/\t0\n".encode()),
        forge.own(OWN + f"d/\t0\n{name}\t1\t0\n".encode()),
    )
    for tree in trees:
        forge.refused(tree, "reserved")
        calm = Snapshot(forge.objects, forge.own(OWN), 10)
        with pytest.raises(FormatError, match="reserved"):
            list(diff(calm, Snapshot(forge.objects, tree, 500)))


def test_a_name_is_not_both_inlined_and_own() -> None:
    forge = Forge()
    child = forge.own(OWN)
    forge.refused(forge.own(OWN + b"c/\t0\n", c=child), "out of order or repeated")


def test_columns_belong_to_pieces() -> None:
    forge = Forge()
    text, column = forge.blob(OWN + b"a\t1\t0\n"), forge.blob(b"d" * 32)
    pieces = forge.tree({piece_key(b"b"): forge.blob(b"b\t1\t0\n")})
    stray = forge.tree({piece_key(b"x") + b".d": column})
    children = {b"p": pieces, b"q": stray}
    forge.refused(forge.tree({b"m": text}, children), "column without its manifest")
    unsuffixed = {b"p": pieces, b"q": forge.tree({piece_key(b"b"): column})}
    forge.refused(forge.tree({b"m": text}, unsuffixed), "unknown piece")
    empty = forge.blob(b"")
    forge.refused(forge.tree({b"m": text, b"d": empty}), "empty digest column")
    long = forge.blob(bytes((512 << 10) + 1))
    forge.refused(forge.tree({b"m": text, b"d": long}), "digest column of more than")


def test_a_comparison_refuses_what_is_wrong_between_pieces() -> None:
    forge = Forge()
    calm = forge.pieces(OWN + b"a\t1\t0\n", b"b\t1\t0\n", b"c\t1\t0\n")
    twice = forge.pieces(OWN + b"a\t1\t0\n", b"b\t1\t0\nd/\t0\n", b"d/\t0\n")
    stray = forge.tree({piece_key(b"x") + b".d": forge.blob(b"d" * 32)})
    text, pieces = OWN + b"a\t1\t0\n", {piece_key(b"b"): forge.blob(b"b\t1\t0\n")}
    column = forge.tree({b"m": forge.blob(text)}, {b"p": forge.tree(pieces), b"q": stray})
    for tree, reason in ((twice, "listed twice"), (column, "column without its manifest")):
        for trees in ((calm, tree), (tree, calm)):
            old, new = (Snapshot(forge.objects, root, 10_000) for root in trees)
            with pytest.raises(FormatError, match=reason):
                list(diff(old, new))


def test_one_piece_takes_the_place_of_another() -> None:
    forge = Forge()
    roots = [forge.pieces(OWN + b"a\t1\t0\n", name + b"\t1\t0\n") for name in (b"b", b"c")]
    old, new = (Snapshot(forge.objects, root, 10_000) for root in roots)
    assert {(each.old, each.new) for each in diff(old, new)} == {
        (file(b"b", 1), None),
        (None, file(b"c", 1)),
    }


def test_pieces_hang_in_the_one_possible_tree() -> None:
    forge = Forge()
    own = forge.blob(OWN)
    key = piece_key(b"x")
    first = {key: forge.blob(b"x\t1\t0\n")}
    nothing = forge.tree({})
    for blobs, trees, reason in (
        ({}, {}, "empty or too large"),
        ({}, {key[:1]: forge.tree(first)}, "split without need"),
        ({}, {b"z": forge.tree(first)}, "unknown piece"),
        ({}, {key[:2]: forge.tree(first)}, "unknown piece"),
        (first, {b"0": forge.tree(first)}, "unknown piece"),
        ({b"short": first[key]}, {}, "unknown piece"),
        ({}, {b"0": nothing}, "empty or too large"),
        ({b"%016d" % n: first[key] for n in range(65)}, {}, "empty or too large"),
    ):
        root = forge.tree({b"m": own}, {b"p": forge.tree(blobs, trees)})
        forge.refused(root, reason)


def test_a_bomb_of_empty_trees_is_no_bomb() -> None:
    # Sixteen levels with sixteen names each are 2^64 trees.
    forge = Forge()
    tree = forge.tree({})
    for _ in range(16):
        tree = forge.tree({}, {b"%x" % digit: tree for digit in range(16)})
    root = forge.tree({b"m": forge.blob(OWN)}, {b"p": tree})
    forge.refused(root, "empty or too large")
    assert len(forge.objects.read_ids) < 100


def test_a_search_in_a_bomb_ends_with_its_time() -> None:
    # Forty levels with two names each.
    forge = Forge()
    tree = forge.own(OWN)
    for _ in range(40):
        tree = forge.own(OWN, a=tree, b=tree)
    names = NameIndex(1 << 20)
    batch, limit, _ = names.search((forge.objects, tree, 10), (b"", b"none", 9), 0.1)
    assert (batch, limit) == (None, "time")
    assert len(forge.objects.read_ids) < 100


def test_a_search_refuses_a_manifest_out_of_order() -> None:
    forge = Forge()
    tree = forge.own(OWN + b"c\t1\t0\nb\t1\t0\na\t1\t0\n")
    with pytest.raises(FormatError, match="out of order"):
        NameIndex(1 << 20).search((forge.objects, tree, 10), (b"", b"a", 9), 60)


def test_subdirectories_that_are_named_count_before_they_are_read() -> None:
    forge = Forge()
    child = forge.own(OWN)
    wide = forge.own(OWN, **{f"{number:03}": child for number in range(200)})
    calm = Snapshot(forge.objects, forge.own(OWN + b"x\t1\t0\n"), 500)
    forge.objects.read_ids.clear()
    forge.refused(wide, "more than 100 entries", limit=100)
    with pytest.raises(FormatError, match="more than 100 entries"):
        list(diff(calm, Snapshot(forge.objects, wide, 100)))
    assert child not in forge.objects.read_ids
    forge.read(wide, 201)


def test_lines_cannot_be_long_throughout() -> None:
    # Ignored fields of a line are kept, too.
    forge = Forge()
    long = b"\tz" + b"x" * 60_000
    text = OWN + b"".join(b"%03d\t1\t0%b\n" % (number, long) for number in range(250))
    child = forge.own(text)
    many = {f"{number:02}": child for number in range(8)}
    forge.read(forge.own(OWN, **{"00": child}))
    forge.refused(forge.own(OWN, **many), "longer than they can be")
    calm = Snapshot(forge.objects, forge.own(OWN), 10)
    with pytest.raises(FormatError, match="longer than they can be"):
        list(diff(calm, Snapshot(forge.objects, forge.own(OWN, **many), 10_000)))


def test_a_directory_of_long_pieces_is_no_way_around() -> None:
    forge = Forge()
    long = b"\tz" + b"x" * 60_000
    texts = [
        b"".join(b"%02d%03d\t1\t0%b\n" % (piece, number, long) for number in range(250))
        for piece in range(8)
    ]
    calm = Snapshot(forge.objects, forge.pieces(OWN, b"zz\t1\t0\n"), 10)
    with pytest.raises(FormatError, match="longer than they can be"):
        list(diff(calm, Snapshot(forge.objects, forge.pieces(OWN, *texts), 10_000)))
    more = OWN + b"".join(b"%03d\t1\t0%b\n" % (number, long) for number in range(300))
    forge.refused(forge.own(more), "manifest of more than 16777216 bytes")


def test_a_deep_path_is_looked_up_from_where_the_last_one_was() -> None:
    forge = Forge()
    tree = forge.own(OWN + b"x\t1\t0\n")
    for _ in range(300):
        tree = forge.own(OWN, d=tree)
    snapshot = Snapshot(forge.objects, tree)
    forge.objects.read_ids.clear()
    for depth in range(301):
        assert snapshot.directory(RelPath(b"/".join([b"d"] * depth)))
    assert snapshot.entry(RelPath(b"/".join([*[b"d"] * 300, b"x"])))
    assert len(forge.objects.read_ids) < 301 * 5


def test_a_path_through_trees_and_manifests_is_bounded() -> None:
    forge = Forge()
    name = "d" * 255
    tree = forge.own(OWN + b"x" * 255 + b"/\t0\n")
    for _ in range(15):
        tree = forge.own(OWN, **{name: tree})
    forge.read(tree)
    forge.refused(forge.own(OWN, **{name: tree}), "4095 bytes")


def test_looking_up_one_directory_reads_one_piece() -> None:
    objects = MemoryObjects()
    tree = tree_of(*(directory(b"d%05d" % n, n) for n in range(5000)))
    read = snapshot(tree, objects)
    assert read.directory(RelPath(b"d00000")) == tree[RelPath(b"d00000")]
    objects.read_ids.clear()
    for n in range(0, 5000, 500):
        assert read.directory(RelPath(b"d%05d" % n)) == directory(b"d%05d" % n, n)
    assert read.directory(RelPath(b"d")) is None
    assert read.directory(RelPath(b"e/f/g")) is None
    assert len(objects.read_ids) <= 2 * 12


def test_looking_up_one_file_reads_one_piece_and_its_digests() -> None:
    objects = MemoryObjects()
    many = [file(b"f%05d" % n, n, digest=bytes([1 + n % 255]) * 32) for n in range(5000)]
    inside = [file(b"in/f%02d" % n, n) for n in range(50)]
    read = snapshot(tree_of(directory(b"in"), *inside, *many), objects)
    assert read.leaf(many[0].path) == many[0]
    objects.read_ids.clear()
    for entry in many[::500] + inside[:1]:
        assert read.leaf(entry.path) == entry
    for absent in (b"", b"f", b"f00000x", b"g", b"in", b"in/g", b"f00000/x", b"no/such/path"):
        assert read.leaf(RelPath(absent)) is None
    assert len(objects.read_ids) <= 2 * 20
