"""The decisions of filter rules about paths, and their order."""

from huai_client.filters import EVERYTHING, Rules
from huai_schema.paths import RelPath


def path(text: str) -> RelPath:
    return RelPath(text.encode())


def test_without_rules_everything_is_mirrored() -> None:
    assert not EVERYTHING
    assert EVERYTHING.reaches(path("a/b"), directory=True)
    assert EVERYTHING.why(path("a/b"), directory=True) is None
    assert EVERYTHING.alike_below(b"a", b"b")


def test_why_names_the_rule_and_what_it_matched() -> None:
    rules = Rules.parse([b"+ /keep/***", b"- *.iso", b"- old/"], place="rule")
    decision = rules.why(path("x/old/a.iso"), directory=False)
    assert decision is not None
    assert (decision.rule.place, decision.path) == ("rule 3", b"x/old")
    decision = rules.why(path("x/a.iso"), directory=False)
    assert decision is not None
    assert (decision.rule.pattern, decision.path) == (b"*.iso", b"x/a.iso")
    decision = rules.why(path("keep/a.iso"), directory=False)
    assert decision is not None
    assert decision.rule.include
    assert rules.why(path("x/a"), directory=False) is None


def test_a_directory_may_move_whole_where_no_rule_tells_the_places_apart() -> None:
    by_name = Rules.parse([b"- *.iso", b"- cache/"])
    assert by_name.alike_below(b"a", b"b/c")
    anchored = Rules.parse([b"- /a/x", b"- *.iso"])
    assert not anchored.alike_below(b"a", b"b")
    assert anchored.alike_below(b"b", b"c")
    assert not Rules.parse([b"- x/y"]).alike_below(b"b", b"c")


def test_thousands_of_rules() -> None:
    lines = [b"- /pool/%d/package-%d_*.deb" % (number % 100, number) for number in range(3000)]
    rules = Rules.parse(lines)
    assert not rules.reaches(path("pool/99/package-2999_1.deb"), directory=False)
    for number in range(500):
        assert rules.reaches(path(f"pool/7/package-x{number}_1.deb"), directory=False)
