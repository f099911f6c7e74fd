"""Filter rules, with the real rsync as the oracle: generated trees, generated rules."""

from hypothesis import given
from hypothesis import strategies as st

from huai_client.filters import FilterError, Parser, Rules
from huai_schema.paths import RelPath, ancestors, join
from tests.support.examples import examples
from tests.support.filter_oracle import Tree, copied, left_over, options_of, selected, tree_of

FEW = examples(60)
"""The number of examples: each starts rsync, which forks twice."""
NAMES = st.sampled_from([b"a", b"b", b"ab", b"ba", b"aab", b".b", b"c"])
ODD = st.sampled_from(
    [b"a", b"*", b"[", b"]", b"\\", b"a\\b", b"?", b"!", b"-", b"a\nb", b"\xff", b" ", b"A", b"[a]"]
)
TOKENS = st.sampled_from(
    b"a b c . / / * * ** *** ? \\ \\a \\* [ab] [!a] [^b] [a-b] []a] [[:alpha:]] [!-\\]] [ ]".split()
)
CLASSES = st.lists(
    st.sampled_from([b"a", b"-", b"c", b"!", b"^", b"]", b"\\", b"[", b":", b"[:punct:]", b"\xff"]),
    max_size=6,
).map(lambda parts: b"[" + b"".join(parts))
BODIES = st.lists(TOKENS, min_size=1, max_size=6).map(b"".join)
PATTERNS = st.builds(
    lambda start, body, end: start + body + end,
    st.sampled_from([b"", b"", b"/", b"**/"]),
    BODIES,
    st.sampled_from([b"", b"", b"/", b"/*", b"/**", b"/***"]),
)
SENDING = st.sampled_from([b"- ", b"+ ", b"-! ", b"+!_", b"H ", b"S ", b"exclude ", b"include,! "])
EITHER = st.sampled_from([b"- ", b"+ ", b"H ", b"S ", b"P ", b"R ", b"P! ", b"protect ", b"-sr "])


@st.composite
def trees(draw: st.DrawFn, names: st.SearchStrategy[bytes] = NAMES) -> Tree:
    """Draw few names, so that rules often match."""
    folders = [RelPath(b"")]
    tree: dict[RelPath, bool] = {}
    for _ in range(draw(st.integers(1, 25))):
        path = join(draw(st.sampled_from(folders)), draw(names))
        if path not in tree:
            tree[path] = draw(st.booleans())
            folders += [path] if tree[path] else []
    return tree


def rules_of(marks: st.SearchStrategy[bytes], most: int) -> st.SearchStrategy[list[bytes]]:
    return st.lists(st.builds(bytes.__add__, marks, PATTERNS), max_size=most)


@FEW
@given(trees(), rules_of(SENDING, 4))
def test_what_is_copied(tree: Tree, rules: list[bytes]) -> None:
    assert selected(tree, Rules.parse(rules)) == copied(tree, *options_of(rules))


@FEW
@given(trees(ODD), st.lists(st.one_of(ODD, TOKENS, CLASSES), min_size=1, max_size=4).map(b"".join))
def test_odd_names_and_odd_patterns(tree: Tree, pattern: bytes) -> None:
    rules = [b"- " + pattern]
    assert selected(tree, Rules.parse(rules)) == copied(tree, *options_of(rules))


@FEW
@given(trees(), st.data(), rules_of(EITHER, 5), st.booleans())
def test_what_is_deleted(
    tree: Tree, data: st.DataObject, rules: list[bytes], delete_excluded: bool
) -> None:
    source, target = (
        tree_of(
            *(path + b"/" * tree[path] for path in data.draw(st.sets(st.sampled_from(list(tree)))))
        )
        for _ in "st"
    )
    parser = Parser(delete_excluded=delete_excluded)
    parser.filter_all(rules, "rule")
    options = [b"--delete-excluded" if delete_excluded else b"--delete", *options_of(rules)]
    assert left_over(source, target, Rules(parser.rules)) == copied(source, *options, onto=target)


@given(st.binary(max_size=12).map(lambda text: text.replace(b"\n", b"")), st.booleans())
def test_any_text_is_rules_or_an_error(text: bytes, delete_excluded: bool) -> None:
    parser = Parser(delete_excluded=delete_excluded)
    try:
        parser.filter(text)
    except FilterError:
        return
    rules = Rules(parser.rules)
    assert Rules.parse(rule.text for rule in rules.rules) == rules


@given(trees(), rules_of(EITHER, 5))
def test_the_reason_agrees_with_the_decision(tree: Tree, lines: list[bytes]) -> None:
    rules = Rules.parse(lines)
    for path, directory in tree.items():
        decision = rules.why(path, directory=directory)
        included = decision is None or decision.rule.include
        assert included == rules.reaches(path, directory=directory)
        assert decision is None or decision.path in (path, *ancestors(path))


@given(trees(), trees(), rules_of(SENDING, 3), NAMES, NAMES)
def test_what_moves_whole(
    tree: Tree, other: Tree, lines: list[bytes], old: bytes, new: bytes
) -> None:
    """Two directories that are called alike have equal decisions for all paths below."""
    rules = Rules.parse(lines)
    mirrored = all(rules.reaches(RelPath(path), directory=True) for path in (old, new))
    if mirrored and rules.alike_below(old, new):
        for path, directory in (*tree.items(), *other.items()):
            old_path, new_path = (RelPath(above + b"/" + path) for above in (old, new))
            assert rules.reaches(old_path, directory=directory) == rules.reaches(
                new_path, directory=directory
            )
