"""A selection reads only the directories that its filter includes."""

import pytest

from huai_client.diff.selection import Extent, Selection, diff_selections
from huai_client.filters import EVERYTHING, Rules
from huai_schema.diff.changes import Moved
from huai_schema.paths import RelPath
from tests.support.schema.memory import MemoryObjects
from tests.support.schema.trees import Tree, directory, file, files, snapshot, tree_of

LEFT_OUT = Rules.parse([b"- /out/"])


def two_folders() -> Tree:
    """Return two directories, both large enough for separate git trees."""
    return tree_of(directory(b"in"), *files(b"in", 200), directory(b"out"), *files(b"out", 200, 1))


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
