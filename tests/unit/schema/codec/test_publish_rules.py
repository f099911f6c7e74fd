"""Publish rules of upstreams and administrators."""

import pytest

from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.publish_rules import (
    PUBLISH_RULES,
    Pattern,
    ProfileRule,
    StageRule,
    VolatileRule,
    own_rules,
    parse_rule,
    usable_rules,
    volatile_rules,
)
from huai_schema.errors import FormatError

GOOD = ("pointers /latest", "indices a/", "payload *.db@", "profile apt /debian", "later on 1")


def test_a_pattern(subtests: pytest.Subtests) -> None:
    for text, pattern in [
        ("/a", Pattern(("a",), symlinks=False)),
        ("a", Pattern(("**", "a"), symlinks=False)),
        ("/a/b c/", Pattern(("a", "b c", "**"), symlinks=False)),
        ("a/*/?", Pattern(("**", "a", "*", "?"), symlinks=False)),
        ("/a/**/b@", Pattern(("a", "**", "b"), symlinks=True)),
        ("/**", Pattern(("**",), symlinks=False)),
    ]:
        with subtests.test(text=text, pattern=pattern):
            assert parse_rule(f"indices {text}") == StageRule(1, pattern, f"indices {text}")


@pytest.mark.parametrize(("path", "expected"), [("/", b""), ("/a/b", b"a/b"), ("/a/", b"a")])
def test_a_profile(path: str, expected: bytes) -> None:
    rule = parse_rule(f"profile apt {path}")
    assert isinstance(rule, ProfileRule)
    assert (rule.profile, rule.path) == ("apt", expected)


def test_what_is_no_rule(subtests: pytest.Subtests) -> None:
    for text in [
        *("", "pointers", "pointers ", "Pointers /a", "pointers /", "pointers //a"),
        *("pointers a//b", "pointers /a/../b", "pointers ./a", "pointers a**", "pointers /a/b**/c"),
        *("pointers @", "pointers a\tb", "pointers a\nb", "pointers " + "a" * 1024, "profile apt"),
        *("profile apt debian", "profile Apt /debian", "profile apt /a/../b", "profile apt /a//b"),
    ]:
        with subtests.test(text=text):
            with pytest.raises(FormatError):
                parse_rule(text)
            with pytest.raises(FormatError):
                Descriptor.decode(Descriptor("m", (), (text,)).encode())


def test_rules_come_back_in_their_order() -> None:
    text = Descriptor("m", ("rsync://h/m",), GOOD).encode()
    assert b"\npublish\tpointers /latest\npublish\tindices a/\n" in text
    assert Descriptor.decode(text).publish == GOOD


def test_a_later_kind_of_rule_is_ignored_and_not_ours_to_write() -> None:
    assert [rule.text for rule in usable_rules(GOOD)] == list(GOOD[:-1])
    assert [rule.text for rule in own_rules(GOOD[:-1])] == list(GOOD[:-1])
    with pytest.raises(FormatError, match="must begin with one of payload, indices, pointers"):
        own_rules(GOOD)


def test_a_volatile_rule_is_read_and_its_pattern_checked() -> None:
    rule = parse_rule("volatile project/trace/*")
    assert rule == VolatileRule(
        Pattern(("**", "project", "trace", "*"), symlinks=False), "volatile project/trace/*"
    )
    assert usable_rules(("volatile /lastsync",)) == own_rules(("volatile /lastsync",))
    assert volatile_rules(("/lastsync", "TIME")) == ("volatile /lastsync", "volatile TIME")
    with pytest.raises(FormatError):
        volatile_rules(("/a/../b",))


def test_too_many() -> None:
    rules = ("payload /a",) * PUBLISH_RULES
    assert Descriptor.decode(Descriptor("m", (), rules).encode()).publish == rules
    with pytest.raises(FormatError, match="more than 256"):
        Descriptor.decode(Descriptor("m", (), (*rules, "payload /a")).encode())
