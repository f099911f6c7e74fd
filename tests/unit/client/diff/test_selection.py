"""A selection reads only the directories that its filter includes."""

import pytest

from huai_client.diff.selection import Extent, Selection, diff_selections
from huai_client.filters import EVERYTHING, Rules
from huai_schema.diff.changes import Change, Moved
from huai_schema.entries import File
from huai_schema.paths import RelPath
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import Tree, directory, file, files, snapshot, tree_of

LEFT_OUT = Rules.parse([b"- /out/"])


def two_folders(mtime: int = 1) -> Tree:
    """Return two directories, both large enough for separate git trees."""
    return tree_of(
        directory(b"in"), *files(b"in", 200), directory(b"out"), *files(b"out", 200, mtime)
    )


def test_nothing_of_a_directory_that_is_left_out_is_read() -> None:
    objects, alone = MemoryObjects(), MemoryObjects()
    full = snapshot(two_folders(), objects)
    snapshot(tree_of(file(b"x"), directory(b"out"), *files(b"out", 200, 1)), alone)
    hidden = alone.objects.keys() & objects.objects.keys()
    selection = Selection(full, LEFT_OUT)
    assert Extent.of(selection) == Extent(202, sum(range(200)))
    assert list(selection.entries_below(RelPath(b"out"))) == []
    assert selection.directory(RelPath(b"out")) is None
    assert (
        list(diff_selections(selection, Selection(full, Rules.parse([b"- /out/", b"- x"])))) == []
    )
    assert len(hidden) > 1
    assert hidden.isdisjoint(objects.read_ids)
    assert Extent.of(Selection(full, EVERYTHING)) == Extent(403, 2 * sum(range(200)))
    assert not hidden.isdisjoint(objects.read_ids)


def test_changes_in_excluded_directories_are_left_out() -> None:
    past, target = snapshot(two_folders()), snapshot(two_folders(mtime=5))
    assert list(diff_selections(Selection(past, LEFT_OUT), Selection(target, LEFT_OUT))) == []


@pytest.mark.parametrize(
    ("rules", "full"),
    [
        ([b"- *.iso"], True),
        ([b"- /in/7"], False),
        ([b"- /in"], False),
        ([b"- /new"], False),
    ],
)
def test_a_directory_that_moves(rules: list[bytes], full: bool) -> None:
    past = snapshot(tree_of(directory(b"in"), *files(b"in", 200)))
    target = snapshot(tree_of(directory(b"new"), *files(b"new", 200)))
    parsed = Rules.parse(rules)
    steps = list(diff_selections(Selection(past, parsed), Selection(target, parsed)))
    assert any(isinstance(step, Moved) for step in steps) == full
    before = Extent.of(Selection(past, parsed))
    assert before.after(steps) == Extent.of(Selection(target, parsed))


def test_a_hardlink_whose_first_name_is_left_out_is_a_file_of_its_own() -> None:
    tree = tree_of(file(b"a", 3), file(b"b", 3, link=RelPath(b"a")))
    past = Selection(snapshot(tree), EVERYTHING)
    target = Selection(snapshot(tree), Rules.parse([b"- a"]))
    linked, alone = past.entry(RelPath(b"b")), target.entry(RelPath(b"b"))
    assert isinstance(linked, File)
    assert isinstance(alone, File)
    assert (linked.link, alone.link) == (b"a", None)
    assert {step.path for step in diff_selections(past, target) if isinstance(step, Change)} == {
        b"a",
        b"b",
    }
