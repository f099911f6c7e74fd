"""Filter rules by hand, each against the real rsync, as tests/property draws them."""

import subprocess

import pytest

from huai_client.filters import FilterError, Parser, Rules
from tests.support.filter_oracle import copied, left_over, options_of, rule_file, selected, tree_of

TREE = tree_of(
    *b"a b/a b/b/a b/b/c b/ab/aab/c c/dists/x/Release c/dists/Release".split(),
    *b"c/pool/x.iso c/pool/x.deb foo foobar bar/foo bar/foo.o".split(),
    *b"foo.d/bar foo.d/x/bar foo.d/x/y/bar d/foo.d/x.c e/empty/".split(),
    *(b"back\\slash", b"star*", b"odd/[x]", b"odd/]", b"odd/-", b"odd/!", b"odd/^", b"odd/a-c"),
    *(b"un/pri\nntable", b"un/\xff\xfe", b"un/\x01", b"un/ blank ", b"un/_", b"un/#no", b"un/;no"),
    *(b"UPPER/Lower", b"un/tab\t", b"..b/...", b".hidden/.x", b"deep/1/2/3/4/5", b"deep/1/x/3/x/5"),
)

CLASSES = (
    *("alnum", "alpha", "blank", "cntrl", "digit", "graph"),
    *("lower", "print", "punct", "space", "upper", "xdigit"),
)

TABLE = {
    "a slash in the middle does not anchor": b"- foo.d/x.c",
    "two stars match nothing too": b"- /deep/**5",
    "trailing three stars, not anchored": b"- foo.d/***",
    "three stars in the middle": b"- /deep/***/5",
    "three stars and a slash": b"- /deep/***/",
    "four stars": b"- ****o",
    "a slash alone": b"- /",
    "backslash before wildcard": b"- back\\\\sl?sh",
    "backslash that is lost": b"- back\\sl?sh",
    "escaped star and a wildcard": b"- st?r\\*",
    "trailing backslash": b"- *\\",
    "range backwards": b"- odd/[z-!]",
    "range to the end": b"- odd/[a-]*",
    "escaped range end": b"- odd/[[-\\]]",
    "range after a class": b"- odd/a[[:punct:]-z]c",
    "named classes": b"- [[:upper:]][[:upper:][:digit:]]*",
    **{f"named class, {name}": b"- [[:%b:]]*" % name.encode() for name in CLASSES},
    **{f"named class at an end, {name}": b"- un/*[[:%b:]]" % name.encode() for name in CLASSES},
    "unknown class": b"- odd/[[:nope:]]",
    "class without an end": b"- odd/[x",
    "named class without an end": b"- odd/[[:x",
    "slash in a class": b"- odd[/]-",
    "stars in a class": b"- od[**d]/-",
    "name with newline": b"- pri\nntable",
    "any byte": b"- un/?\xfe",
    "blanks belong to the pattern": b"-  blank ",
    "underscore for blank": b"-_ blank ",
    "underscore as pattern": b"- _",
    "long name": b"exclude foo",
    "long name, underscore, modifiers": b"exclude,s_foo",
    "comma": b"-,s foo",
    "negated, directories": b"-! */",
    "negated, anchored": b"-! /b/***",
}

RULES = {
    **{name: [rule] for name, rule in TABLE.items()},
    "first match wins": [b"+ foo", b"- foo*"],
    "only some": [b"+ /c/", b"+ /c/dists/***", b"- *"],
    "the parent is left out": [b"- /c/", b"+ /c/dists/***"],
    "the parent is missing from the includes": [b"+ /c/dists/***", b"- *"],
    "directories and sources": [b"+ */", b"+ *.c", b"- *"],
    "clear": [b"- *", b"!", b"- foo"],
    "clear, long": [b"- *", b"clear", b"- foo"],
    "show and hide": [b"S foo.d/", b"H foo*", b"R *", b"P *"],
    "nothing": [],
}

DELETIONS = {
    "nothing said": [],
    "excluded": [b"- /b/***", b"- foo*"],
    "excluded, both sides by name": [b"-sr /b/***", b"-rs foo*"],
    "protected": [b"P c", b"P foo*"],
    "protected below what goes": [b"P /b/b/c", b"P bar"],
    "hidden and protected": [b"H /b/", b"P /b/b/a"],
    "hidden, protected directory": [b"H /b/", b"P /b/"],
    "risk before protect": [b"R /b/b/", b"P /b/***", b"H /b/***"],
    "all but": [b"P! *.d/", b"H *"],
}


def parse(rules: list[bytes], *, delete_excluded: bool = True) -> Rules:
    parser = Parser(delete_excluded=delete_excluded)
    parser.filter_all(rules, "rule")
    return Rules(parser.rules)


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_selected_paths(rules: list[bytes]) -> None:
    assert selected(TREE, parse(rules)) == copied(TREE, *options_of(rules))


@pytest.mark.parametrize("delete_excluded", [False, True])
@pytest.mark.parametrize("rules", DELETIONS.values(), ids=DELETIONS)
def test_deleted_paths(rules: list[bytes], delete_excluded: bool) -> None:
    source = tree_of(b"foo.d/bar", b"bar/foo.o", b"b/a", b"c/new")
    option = b"--delete-excluded" if delete_excluded else b"--delete"
    by_rsync = copied(source, option, *options_of(rules), onto=TREE)
    assert left_over(source, TREE, parse(rules, delete_excluded=delete_excluded)) == by_rsync


RULE_FILE = (
    b"# a comment\n; another\n\n+ foo\r\n- foo*\n- un/\rH /c/***\n- #no\n- d\n!\n- b\n+ c\n- d"
)
PATTERN_FILE = b"#no\n;no\nfoo\n+ foo.d\n- b\n\xff\xfe\r\n /c\n!\nbar\n!x\n#no"


@pytest.mark.parametrize("mark", [b". ", b"merge ", b".s ", b"merge,_"])
def test_a_merged_file(mark: bytes) -> None:
    # A side is named either by the rule that merges or by those in the file.
    text = RULE_FILE.replace(b"H ", b"- ") if mark == b".s " else RULE_FILE
    with rule_file(text) as name:
        rule = mark + name
        read = {name: text}.__getitem__
        assert selected(TREE, Rules.parse([rule], read)) == copied(TREE, b"--filter=" + rule)


def test_a_merged_file_of_bare_patterns() -> None:
    for mark in (b".- ", b".+ ", b".-s ", b"merge,- "):
        with rule_file(PATTERN_FILE) as name:
            rules = [mark + name, b"- *.d"]
            read = {name: PATTERN_FILE}.__getitem__
            assert selected(TREE, Rules.parse(rules, read)) == copied(TREE, *options_of(rules))


def test_a_side_for_a_merged_file_and_the_files_in_it() -> None:
    with rule_file(b"- b\n- c/pool") as inner, rule_file(b"- foo*\n. " + inner) as outer:
        read = {inner: b"- b\n- c/pool", outer: b"- foo*\n. " + inner}.__getitem__
        for mark in (b".r ", b".s ", b".rs ", b". "):
            source = tree_of(b"c/x")
            by_rsync = copied(source, b"--delete", b"--filter=" + mark + outer, onto=TREE)
            parser = Parser(read)
            parser.filter(mark + outer)
            assert left_over(source, TREE, Rules(parser.rules)) == by_rsync


def test_options_of_a_command_line() -> None:
    with rule_file(PATTERN_FILE) as name:
        parser = Parser({name: PATTERN_FILE}.__getitem__)
        parser.include(b"foo.d")
        parser.exclude(b"+ foo.o")
        parser.include(b"- d")
        parser.exclude_from(name)
        parser.include_from(name)
        parser.exclude(b"c/**")
        parser.filter(b"- f*")
        options = [b"--include=foo.d", b"--exclude=+ foo.o", b"--include=- d"]
        options += [b"--exclude-from=" + name, b"--include-from=" + name]
        options += [b"--exclude=c/**", b"--filter=- f*"]
        assert selected(TREE, Rules(parser.rules)) == copied(TREE, *options)


@pytest.mark.parametrize(
    "rule",
    [
        *(b"foo", b"-foo", b"-", b"- ", b"+", b"-,", b"!x", b"! ", b"clear x", b"exclude"),
        *(b"excludefoo", b"-Q x", b"Hs x", b"Pr x", b". ", b"-,,s x", b".! x", b"+-s x"),
        *(b"protect,r x", b" - x", b"\t", b"exclude\tx", b".-+ x", b"merge"),
    ],
)
def test_rules_that_rsync_refuses(rule: bytes) -> None:
    with pytest.raises(FilterError), rule_file(b"") as name:
        Parser(lambda _: b"").filter(rule.replace(b" x", b" " + name))
    with pytest.raises(subprocess.CalledProcessError):
        copied({}, b"--filter=" + rule)
