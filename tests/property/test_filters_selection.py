"""A snapshot seen through a filter, compared with a slow filter on dictionaries."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from huai_client.diff.selection import Extent, Selection, diff_selections
from huai_client.filters import Rules
from huai_schema.entries import Directory, File
from huai_schema.paths import RelPath, ancestors
from tests.support.schema.strategies import RANDOMS
from tests.support.schema.trees import Tree, changed_tree, random_tree, replay, same, snapshot

PARTS = st.sampled_from(
    [b"*", b"**", b"f*", b"*1*", b"*[0-4]", b"*/", b"/*/", b"*/*/", b"/*/*", b"*/**/", b"zzz*"]
)


@st.composite
def rules_for(draw: st.DrawFn, tree: Tree) -> Rules:
    """Draw rules for `tree`, some with its paths."""
    paths = sorted(tree)[1:] or [RelPath(b"none")]
    rooted = st.sampled_from(paths).map(lambda path: b"/" + path.translate(None, b"*?[\\"))
    kinds = st.sampled_from([b"H ", b"H ", b"S "])
    patterns = st.one_of(PARTS, rooted, rooted.map(lambda path: path + b"/***"))
    lines = draw(st.lists(st.builds(bytes.__add__, kinds, patterns), max_size=4))
    return Rules.parse(lines)


def selected_tree(tree: Tree, rules: Rules) -> Tree:
    """Return the part of `tree` that the rules select, as a dictionary."""
    selected: Tree = {}
    for path, entry in tree.items():
        if not rules.reaches(path, directory=isinstance(entry, Directory)):
            continue
        selected[path] = entry
        if (
            isinstance(entry, File)
            and entry.link
            and not rules.reaches(entry.link, directory=False)
        ):
            selected[path] = entry._replace(link=None)
    return selected


@given(RANDOMS, st.data())
def test_a_selection(random: Random, data: st.DataObject) -> None:
    tree = random_tree(random, random.randrange(1, 400))
    rules = data.draw(rules_for(tree))
    complete = snapshot(tree)
    selection, expected = Selection(complete, rules), selected_tree(tree, rules)
    entries = list(selection.entries())
    assert {entry.path: entry for entry in entries} == expected
    assert [entry.path for entry in entries] == [
        entry.path for entry in complete.entries() if entry.path in expected
    ]
    for path in random.sample(sorted(tree), min(len(tree), 8)):
        assert selection.entry(path) == expected.get(path)
        expected_entry = expected.get(path)
        assert selection.directory(path) == (
            expected_entry if isinstance(expected_entry, Directory) else None
        )
        if isinstance(tree[path], Directory):
            below = [each for each in expected if each == path or path in ancestors(each)]
            assert {each.path for each in selection.entries_below(path)} == set(below)


@given(RANDOMS, st.data(), st.booleans())
def test_the_difference_of_two_selections(
    random: Random, data: st.DataObject, same_filter: bool
) -> None:
    tree = random_tree(random, random.randrange(1, 400))
    other = changed_tree(random, tree, random.randrange(8))
    before = data.draw(rules_for(tree))
    after = before if same_filter else data.draw(rules_for(other))
    past, target = Selection(snapshot(tree), before), Selection(snapshot(other), after)
    steps = list(diff_selections(past, target))
    assert same(replay(selected_tree(tree, before), steps), selected_tree(other, after))
    assert Extent.of(past).after(steps) == Extent.of(target)
    assert Extent.of(target).entries == len(selected_tree(other, after))
