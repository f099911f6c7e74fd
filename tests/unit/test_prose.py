import pytest

from tests.prose import find_offences

PYTHON = [
    ('"""What it is."""\n', "a docstring that opens with 'What'"),
    ('class A:\n    """As `B` says."""\n', "a docstring that says nothing"),
    ('a = f("x is no directory")\n', "the words 'is no directory'"),  # prose: input of the check
    ("a = 1  # nobody reads it\n", "the words 'nobody'"),  # prose: input of the check
    ("def load(found): ...\n", "the name 'found'"),
    ("async def _take(): ...\n", "the name 'take'"),
    ("class _Question: ...\n", "the name 'Question'"),
    ("self._told = 1\n", "the name 'told'"),
    ("with a() as said: ...\n", "the name 'said'"),
    ("for each in a: ...\n", "the name 'each'"),
]
RUST = [
    ("/// Whether it is open.\n", "a docstring that opens with 'Whether'"),
    ("/// A path.\n///\n/// What it holds.\n", "a docstring that opens with 'What'"),
    ("// made anew\n", "the words 'anew'"),  # prose: input of the check
    ('    return Err("it is no file");\n', "the words 'is no file'"),  # prose: input of the check
    ("    let mut found = 1;\n", "the name 'found'"),
    ("fn take() {}\n", "the name 'take'"),
    ("struct Found;\n", "the name 'Found'"),
]
RIGHT = [
    ("a.py", '"""Lists modules."""\nb = [each for each in c if d is no_e]\n'),
    ("a.py", 'a = "there is no longer one"\n'),
    ("a.py", "found = 1  # prose: the protocol's own word\n"),
    ("a.rs", "/// A path.\n/// What it holds stands below.\nlet path = 1;\n"),
    ("a.md", "A page of plain words.\n"),
]


def test_what_breaks_a_rule_is_named(subtests: pytest.Subtests) -> None:
    for name, rows in (("a.py", PYTHON), ("a.rs", RUST)):
        for source, text in rows:
            with subtests.test(source):
                assert [each.text for each in find_offences(name, source)] == [text]
    (page,) = find_offences("a.md", "One.\nIt is made anew.\n")
    assert page == ("a.md", 2, "the words 'anew'")  # prose: input of the check


def test_what_keeps_the_rules_passes(subtests: pytest.Subtests) -> None:
    for name, source in RIGHT:
        with subtests.test(source):
            assert not list(find_offences(name, source))
