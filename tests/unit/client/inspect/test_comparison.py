"""The differences between two snapshots: every step is right, and they are complete."""

from collections.abc import Iterator
from random import Random

from hypothesis import given

from huai_client.inspect import comparison
from huai_client.inspect.comparison import (
    ChangeTotals,
    Sign,
    SnapshotChange,
    by_path,
    compare_snapshots,
)
from huai_schema.diff.changes import differing
from huai_schema.paths import RelPath
from tests.support.examples import examples
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.strategies import RANDOMS
from tests.support.schema.trees import (
    Tree,
    changed_tree,
    directory,
    file,
    files,
    random_tree,
    snapshot,
    tree_of,
)

ONE, TWO = bytes([1]) * 32, bytes([2]) * 32


def steps(old: Tree, new: Tree) -> list[SnapshotChange]:
    objects = MemoryObjects()
    return list(by_path(compare_snapshots(snapshot(old, objects), snapshot(new, objects))))


def carried(path: RelPath, changes: list[SnapshotChange]) -> RelPath:
    """Return the path of an old entry after the directories above it have moved."""
    for step in changes:
        source = step.source if step.old is None else None
        if source is not None and (path == source or path.startswith(source + b"/")):
            return RelPath(step.path + path[len(source) :])
    return path


@examples(60)
@given(RANDOMS)
def test_all_steps_together_lead_from_one_tree_to_the_other(random: Random) -> None:
    old = random_tree(random, 150)
    new = changed_tree(random, old, 8)
    changes = steps(old, new)
    paths = {carried(path, changes): entry for path, entry in old.items()}
    for step in changes:
        if step.sign is Sign.REMOVED:
            assert paths.pop(carried(step.path, changes)) == step.old
        elif step.sign is Sign.MOVED and step.old is not None and step.source is not None:
            assert paths.pop(carried(step.source, changes)) == step.old
    for step in changes:
        if step.new is not None:
            assert new[step.path] == step.new
            paths[step.path] = step.new
    assert paths.keys() == new.keys()
    for path, entry in new.items():
        # The leader of a link may be named again when a directory moves.
        assert not differing(paths[path], entry) - {"link"}


def test_a_file_with_the_same_digest_has_moved() -> None:
    old = tree_of(file(b"a", 5, digest=ONE), file(b"b", 5, digest=ONE), file(b"c", 0, digest=TWO))
    new = tree_of(file(b"x", 5, digest=ONE), file(b"y", 5), file(b"z", 0, digest=TWO))
    changes = [(step.sign, step.path, step.source) for step in steps(old, new)]
    assert changes == [
        (Sign.REMOVED, b"b", None),
        (Sign.REMOVED, b"c", None),
        (Sign.MOVED, b"x", b"a"),
        (Sign.ADDED, b"y", None),
        (Sign.ADDED, b"z", None),
    ]


def test_a_file_that_became_a_directory_is_gone_before_it_is_there() -> None:
    changes = steps(tree_of(file(b"a")), tree_of(directory(b"a"), file(b"a/b")))
    assert [(step.sign, step.path) for step in changes] == [
        (Sign.REMOVED, b"a"),
        (Sign.ADDED, b"a"),
        (Sign.ADDED, b"a/b"),
    ]


def test_what_changed_in_a_directory_that_moved() -> None:
    inside = files(b"old", 300)
    moved = [each._replace(path=RelPath(b"new" + each.path[3:])) for each in inside]
    moved[1] = moved[1]._replace(mtime=7)
    moved[2] = file(b"new/more", 2)
    changes = steps(tree_of(directory(b"old"), *inside), tree_of(directory(b"new"), *moved))
    assert [(step.sign, step.path, step.source) for step in changes] == [
        (Sign.MOVED, b"new", b"old"),
        (Sign.CHANGED, b"new/f000001", None),
        (Sign.ADDED, b"new/more", None),
        (Sign.REMOVED, b"old/f000002", None),
    ]


def test_many_steps_are_told_as_they_come() -> None:
    few = [SnapshotChange(Sign.ADDED, RelPath(path)) for path in (b"c", b"a", b"b")]
    assert [step.path for step in by_path(few)] == [b"a", b"b", b"c"]
    yielded = 0

    def endless() -> Iterator[SnapshotChange]:
        nonlocal yielded
        while True:
            yielded += 1
            yield few[yielded % 3]

    stream = by_path(endless())
    next(stream)
    assert yielded == comparison.SORTED_MOST + 1
    next(stream)
    assert yielded == comparison.SORTED_MOST + 1


def test_bytes_are_those_of_other_content() -> None:
    old = tree_of(file(b"same", 7, 1), file(b"grown", 1), file(b"gone", 30))
    new = tree_of(file(b"same", 7, 2), file(b"grown", 5), file(b"new", 100))
    tally = ChangeTotals()
    for step in steps(old, new):
        tally.add(step)
    assert tally.values() == {
        "added": 1,
        "added_bytes": 100,
        "removed": 1,
        "removed_bytes": 30,
        "changed": 2,
        "changed_bytes": 5,
        "moved": 0,
        "moved_bytes": 0,
    }
    assert str(tally) == "1 added (100 B), 1 removed (30 B), 2 changed (5 B)"
    assert str(ChangeTotals()) == "nothing differs"


def test_directories_with_another_time_only_are_counted_apart() -> None:
    changed = directory(b"d")
    tally = ChangeTotals()
    for new in (changed._replace(mtime=changed.mtime + 1), changed._replace(mode=0o700)):
        tally.add(SnapshotChange(Sign.CHANGED, RelPath(b"d"), changed, new))
    assert str(tally) == "1 changed (0 B), the times of 1 directory"
    assert tally.values()["changed"] == 2
