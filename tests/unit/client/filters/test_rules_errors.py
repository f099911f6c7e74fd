"""Rules that huai does not support are refused with the reason, the place and a hint."""

from pathlib import Path

import pytest

from huai_client.filters import FilterError, Parser, Rules, load_rules
from huai_client.filters.parser import MERGE_DEPTH
from huai_schema.errors import ExitCode


def refused(*lines: str, folder: Path) -> FilterError:
    with pytest.raises(FilterError) as caught:
        load_rules(lines, folder, place="debian: filter rule")
    assert caught.value.exit_code == ExitCode.CONFIG
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("*.iso", "this is not the beginning of a rule"),
        ("exclud *.iso", "this is not the beginning of a rule"),
        ("- ", "the pattern is missing"),
        ("merge", "the file name is missing"),
        ("! now", "nothing may follow '!'"),
        (": .rsync-filter", "per-directory rules (dir-merge) are not supported"),
        ("dir-merge .rsync-filter", "per-directory rules (dir-merge) are not supported"),
        ("-/ /srv/x", "modifier '/', which matches absolute paths, is not supported"),
        ("-C", "modifier 'C', which takes CVS's ignore rules, is not supported"),
        ("-p x", "modifier 'p', which makes a rule perishable, is not supported"),
        ("-x user.*", "modifier 'x', which is for extended attributes, is not supported"),
        (".e rules", "modifier 'e', which leaves out the merged file itself, is not supported"),
        (".n rules", "modifier 'n', which keeps rules from being inherited, is not supported"),
        (".w rules", "modifier 'w', which separates rules by spaces, is not supported"),
        ("-Q x", "modifier 'Q' does not go with this rule"),
        (".+- rules", "only one of the modifiers '-' and '+' may be given"),
        ("- " + "x" * 5000, "the rule is longer than 4095 bytes"),
        ("- a\0b", "the rule contains a NUL byte"),
        ("P x", "a filter decides which paths are mirrored and cannot protect any"),
        ("risk x", "a filter decides which paths are mirrored and cannot protect any"),
        ("-sr x", "a filter decides which paths are mirrored and cannot protect any"),
    ],
)
def test_a_rule_is_named_with_its_place_and_a_way_out(
    rule: str, reason: str, tmp_path: Path
) -> None:
    error = refused("# a comment counts as a rule's place", rule, folder=tmp_path)
    assert error.message.startswith("debian: filter rule 2: '")
    assert reason in error.message


def test_a_rule_in_a_merged_file_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("- a\n\nnonsense\n")
    error = refused(". rules", folder=tmp_path)
    assert error.message == "rules line 3: 'nonsense': this is not the beginning of a rule"


def test_a_merged_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert f"{tmp_path}/rules: No such file" in refused(". rules", folder=tmp_path).message
    (tmp_path / "rules").mkdir()
    assert "Is a directory" in refused("merge rules", folder=tmp_path).message
    assert "standard input" in refused(". -", folder=tmp_path).message


def test_a_file_that_merges_itself(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text(". rules\n")
    error = refused(". rules", folder=tmp_path)
    assert f"files are merged more than {MERGE_DEPTH} deep" in error.message
    assert "check whether rules merges itself" in error.hint


def test_a_side_that_is_named_twice() -> None:
    with pytest.raises(FilterError, match="names a side already"):
        Parser(lambda _: b"H x\n").filter(b".s rules")


def test_names_count_from_the_folder_unless_they_are_absolute(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("- a\n")
    (tmp_path / "two").write_text("- b\n")
    rules = load_rules([". one", f"merge {tmp_path}/two"], tmp_path)
    assert rules == load_rules(["- a", "- b"], tmp_path)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"- *.iso", b"+! /x/***"],
        [b"- a\nb", b"- \xff\xfe\xc3\xa4", b"- \\x5c", b"-_ blank ", b"- \xc2\x85\r\x1b"],
        [b"P x", b"R y", b"H z", b"S z"],
    ],
)
def test_rules_from_the_text_that_is_recorded(lines: list[bytes]) -> None:
    rules = Rules.parse(lines)
    assert Rules.from_key(rules.key()) == rules
    assert rules.key().count("\n") == len(lines)


def test_the_recorded_text_says_the_same_for_the_same_rules() -> None:
    one = Rules.parse([b"# why", b"exclude *.iso", b""])
    assert one.key() == Rules.parse([b"- *.iso"]).key()
    assert one.key() != Rules.parse([b"+ *.iso"]).key()
