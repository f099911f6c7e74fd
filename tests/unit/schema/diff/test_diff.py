import pytest

from huai_native import _native
from huai_schema.diff.changes import Change, Moved, differing, merge_by_path
from huai_schema.diff.diff import diff
from huai_schema.entries import Directory, File, Symlink
from huai_schema.errors import FormatError
from huai_schema.git.objects import Kind
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import Tree, directory, file, files, replay, same, snapshot, tree_of


def compare(old: Tree, new: Tree) -> list[Change | Moved]:
    differences = list(diff(snapshot(old), snapshot(new)))
    assert same(replay(old, differences), new)
    return differences


def paths(differences: list[Change | Moved]) -> set[bytes]:
    assert all(isinstance(each, Change) for each in differences)
    return {each.path for each in differences if isinstance(each, Change)}


def test_crossing_a_threshold_is_no_change(subtests: pytest.Subtests) -> None:
    for count in [126, 127, 128, 254, 255, 256]:
        for step in [1, 2, -2]:
            with subtests.test(count=count, step=step):
                inside = files(b"d", max(count, count + step))
                fewer, more = sorted((count, count + step))
                small = tree_of(directory(b"d"), *inside[:fewer], file(b"z"))
                large = tree_of(directory(b"d"), *inside[:more], file(b"z"))
                names = {each.path for each in inside[fewer:more]}
                assert paths(compare(small, large)) == names
                assert paths(compare(large, small)) == names


def test_a_file_that_became_a_directory_is_one_change_when_joined() -> None:
    old, new = file(b"x", 1), directory(b"x", 2)
    (change,) = merge_by_path(
        [c for c in compare(tree_of(old), tree_of(new)) if isinstance(c, Change)]
    ).values()
    assert change == Change(old.path, old, new)
    assert change.attributes == {"type"}


def test_what_was_found_is_handed_over_before_all_is_read() -> None:
    objects = MemoryObjects()
    leaves = files(b"", 5000)
    old = snapshot(tree_of(*leaves), objects)
    new = snapshot(tree_of(*(each._replace(mtime=1) for each in leaves)), objects)
    differences = diff(old, new)
    next(differences)
    read = len(objects.read_ids)
    assert len(list(differences)) == 4999
    assert 0 < read < len(objects.read_ids) / 2


def test_a_failure_of_the_reader_comes_through_unchanged() -> None:
    class Reader:
        def read(self, _oid: bytes, _kind: Kind) -> bytes:
            raise failure

    failure = FormatError("reason", "place")
    with pytest.raises(FormatError) as caught:
        list(diff(Snapshot(Reader(), b"1" * 20), Snapshot(Reader(), b"2" * 20)))
    assert caught.value is failure


def test_a_reader_cannot_ask_the_comparison_that_is_asking_it() -> None:
    class Reader:
        def read(self, _oid: bytes, _kind: Kind) -> bytes:
            return comparison.batch(1)  # type: ignore[return-value]

    comparison = _native.Comparison((Reader(), b"1" * 20, 1), (Reader(), b"2" * 20, 1))
    with pytest.raises(RuntimeError, match="another call uses"):
        comparison.batch(1)


def test_digests_that_became_known_are_no_change() -> None:
    old = tree_of(*files(b"", 400))
    new = tree_of(*(each._replace(digest=b"d" * 32) for each in files(b"", 400)))
    assert not compare(old, new)
    assert not compare(new, old)


@pytest.mark.parametrize("count", [3, 400, 12_000])
@pytest.mark.parametrize("gap", [1, 2, None])
def test_another_digest_alone_is_a_change(count: int, gap: int | None) -> None:
    one, other = b"1" * 32, b"2" * 32
    entries = enumerate(files(b"", count))
    leaves = [e._replace(digest=None if gap and n % gap else one) for n, e in entries]
    changed = {leaves[0].path, leaves[count // 2].path, leaves[-1].path}
    after = [e._replace(digest=e.digest and other) if e.path in changed else e for e in leaves]
    differences = compare(tree_of(*leaves), tree_of(*after))
    assert paths(differences) == {e.path for e in leaves if e.digest and e.path in changed}
    assert all(isinstance(e, Change) and e.attributes == {"digest"} for e in differences)


def test_every_attribute_has_a_name() -> None:
    path = RelPath(b"p")
    one = File(path, 1, 1, 0o600, b"a", b"a", None, b"1" * 32)
    other = File(path, 2, 2, 0o644, b"b", b"b", RelPath(b"l"), b"2" * 32)
    names = {"size", "mtime", "mode", "owner", "group", "link", "digest"}
    assert differing(one, other) == names
    assert differing(Symlink(path, b"a", 1), Symlink(path, b"b", 1)) == {"target"}
    assert differing(Directory(path, 1), Directory(path, 2)) == {"mtime"}
    assert differing(Directory(path, 1), Symlink(path, b"a", 1)) == {"type"}
    assert not differing(one, one._replace(digest=None))
