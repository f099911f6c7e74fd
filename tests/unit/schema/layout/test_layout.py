from collections.abc import Iterator

import pytest

from huai_native._native import write_tree
from huai_schema.codec.listing import Listing
from huai_schema.errors import FormatError
from huai_schema.paths import RelPath
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import directory, file, files, snapshot, tree_of


def listing(path: bytes, leaves: bytes = b"") -> Listing:
    return Listing(RelPath(path), b"0", leaves)


def test_listings_come_in_tree_order(subtests: pytest.Subtests) -> None:
    for order in [
        [b"a"],
        [b"", b""],
        [b"", b"a/b"],
        [b"", b"b", b"a"],
        [b"", b"a", b"a"],
        [b"", b"a", b"b", b"a/c"],
        [b"", b"a", b"a/c", b"a/b"],
        [b"", b"a", b"ab/c"],
    ]:
        with subtests.test(order=order):
            with pytest.raises(FormatError, match="tree order"):
                write_tree(map(listing, order), MemoryObjects())


def in_parts(path: bytes, leaves: list[bytes], size: int) -> Iterator[Listing]:
    """Yield a listing in parts, every second one with digests."""
    for start in range(0, len(leaves), size):
        text = b"".join(leaves[start : start + size])
        part = Listing(RelPath(path), b"0" if start == 0 else b"", text)
        digests = b"d" * 32 * text.count(b"\n")
        yield part._replace(digests=digests if start // size % 2 else b"")


def test_a_directory_may_come_in_parts(subtests: pytest.Subtests) -> None:
    for size in [1, 50, 100, 255, 256, 300, 1000]:
        for count in [100, 255, 256, 1000]:
            with subtests.test(size=size, count=count):
                leaves = [b"%04d\t1\t0\n" % number for number in range(count)]
                parts = list(in_parts(b"d", leaves, size))
                zeros = (bytes(32 * part.leaves.count(b"\n")) for part in parts)
                column = b"".join(p.digests or none for p, none in zip(parts, zeros, strict=True))
                complete = listing(b"d", b"".join(leaves))._replace(digests=column)
                rest = [listing(b"d/sub", b"leaf\t1\t0\n"), listing(b"e")]
                assert write_tree([listing(b""), *parts, *rest], None) == write_tree(
                    [listing(b""), complete, *rest], None
                )
                top = [listing(b"", b"".join(leaves))._replace(digests=complete.digests), *rest[1:]]
                assert write_tree([*in_parts(b"", leaves, size), *rest[1:]], None) == write_tree(
                    top, None
                )


@pytest.mark.parametrize(
    "order", [[b"a"], [b"", b"a", b"b"], [b"", b"a", b"a/b", b"a"], [b"", b"a", b""]]
)
def test_parts_come_right_after_the_directory(order: list[bytes]) -> None:
    *before, last = order
    more = Listing(RelPath(last), b"", b"leaf\t1\t0\n")
    with pytest.raises(FormatError, match="tree order"):
        write_tree([*map(listing, before), more], None)


def test_a_tree_has_a_root() -> None:
    with pytest.raises(FormatError, match="without a root"):
        write_tree([], MemoryObjects())


def test_touching_a_file_rewrites_no_digest() -> None:
    digest = b"d" * 32
    before, after = MemoryObjects(), MemoryObjects()
    old = [each._replace(digest=digest) for each in files(b"", 5000)]
    snapshot(tree_of(*old), before)
    snapshot(tree_of(*old[:-1], old[-1]._replace(mtime=1)), after)
    # The root, its p, and the one piece; q stays.
    assert len(after.objects.keys() - before.objects.keys()) == 3


def test_renaming_a_directory_writes_only_the_tree_above() -> None:
    before, after = MemoryObjects(), MemoryObjects()
    snapshot(tree_of(directory(b"a"), *files(b"a", 1000)), before)
    snapshot(tree_of(directory(b"b"), *files(b"b", 1000)), after)
    assert len(after.objects.keys() - before.objects.keys()) == 1


def test_one_new_file_rewrites_few_pieces_of_a_large_directory() -> None:
    before, after = MemoryObjects(), MemoryObjects()
    snapshot(tree_of(*files(b"", 30_000)), before)
    snapshot(tree_of(*files(b"", 30_000), file(b"f012345x")), after)
    # A piece (two if the new name cuts one), and the trees down to it.
    assert len(after.objects.keys() - before.objects.keys()) <= 2 + 4


def test_objects_leave_before_the_tree_is_complete() -> None:
    objects = MemoryObjects()
    text = b"".join(b"%04d\t1\t0\n" % n for n in range(200))

    def listings() -> Iterator[Listing]:
        yield listing(b"")
        for n in range(20):
            yield listing(b"d%02d" % n, text)
        assert len(objects.objects) >= 2

    assert write_tree(listings(), objects) in objects.objects


def test_an_exception_of_the_writer_comes_through() -> None:
    class Full:
        def write(self, kind: str, data: bytes) -> bytes:
            raise OSError(28, kind, data)

    with pytest.raises(OSError, match="blob"):
        write_tree([listing(b"")], Full())
