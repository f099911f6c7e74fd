"""A snapshot seen through a filter, against the same done the slow way on dictionaries."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from huai_client.diff.selection import Extent, Selection
from huai_client.diff.selections import diff_selections
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
    """Rules that meet `tree`: some name what is in it."""
    paths = sorted(tree)[1:] or [RelPath(b"none")]
    named = st.sampled_from(paths).map(lambda path: b"/" + path.translate(None, b"*?[\\"))
    kinds = st.sampled_from([b"H ", b"H ", b"S "])
    patterns = st.one_of(PARTS, named, named.map(lambda path: path + b"/***"))
    lines = draw(st.lists(st.builds(bytes.__add__, kinds, patterns), max_size=4))
    return Rules.parse(lines)


def seen(tree: Tree, rules: Rules) -> Tree:
    """The part of `tree` that is let through, as dictionaries have it."""
    found: Tree = {}
    for path, entry in tree.items():
        if not rules.reaches(path, directory=isinstance(entry, Directory)):
            continue
        found[path] = entry
        if (
            isinstance(entry, File)
            and entry.link
            and not rules.reaches(entry.link, directory=False)
        ):
            found[path] = entry._replace(link=None)
    return found


@given(RANDOMS, st.data())
def test_a_selection(random: Random, data: st.DataObject) -> None:
    tree = random_tree(random, random.randrange(1, 400))
    rules = data.draw(rules_for(tree))
    whole = snapshot(tree)
    selection, wanted = Selection(whole, rules), seen(tree, rules)
    entries = list(selection.entries())
    assert {entry.path: entry for entry in entries} == wanted
    assert [entry.path for entry in entries] == [
        entry.path for entry in whole.entries() if entry.path in wanted
    ]
    for path in random.sample(sorted(tree), min(len(tree), 8)):
        assert selection.entry(path) == wanted.get(path)
        found = wanted.get(path)
        assert selection.directory(path) == (found if isinstance(found, Directory) else None)
        if isinstance(tree[path], Directory):
            below = [each for each in wanted if each == path or path in ancestors(each)]
            assert {each.path for each in selection.entries_below(path)} == set(below)


@given(RANDOMS, st.data(), st.booleans())
def test_the_difference_of_two_selections(
    random: Random, data: st.DataObject, same_filter: bool
) -> None:
    tree = random_tree(random, random.randrange(1, 400))
    other = changed_tree(random, tree, random.randrange(8))
    before = data.draw(rules_for(tree))
    after = before if same_filter else data.draw(rules_for(other))
    past, wanted = Selection(snapshot(tree), before), Selection(snapshot(other), after)
    steps = list(diff_selections(past, wanted))
    assert same(replay(seen(tree, before), steps), seen(other, after))
    assert Extent.of(past).after(steps) == Extent.of(wanted)
    assert Extent.of(wanted).entries == len(seen(other, after))
