"""An upstream's publish rules, from server.toml into the descriptor."""

from pathlib import Path

import pytest

from huai_program.configuration import ConfigError
from huai_server.config.load import add_module, load
from huai_server.config.tables import Module
from huai_server.config.volatile import Volatile

RULES = ("pointers /serial", "profile apt /debian")


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("pointer /serial", "must begin with one of payload, indices, pointers, volatile, profile"),
        ("pointers", "is not a publish rule"),
        ("pointers a//b", "is not a pattern"),
        ("profile apt debian", "is not a publish rule"),
    ],
)
def test_a_rule_that_is_none(tmp_path: Path, rule: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        add_module(tmp_path, "m", Module("/m", publish=(rule,)))


VOLATILE = ("/lastsync", "/project/trace/*", "TIME", "/stats/")


def test_volatile_files_become_publish_rules(tmp_path: Path) -> None:
    add_module(tmp_path, "m", Module("/m", publish=RULES, volatile=VOLATILE))
    module = load(tmp_path).module("m")
    assert module.volatile == VOLATILE
    assert module.rules == (*RULES, *(f"volatile {pattern}" for pattern in VOLATILE))


@pytest.mark.parametrize("pattern", ["", "a//b", "/", "../x", " x"])
def test_what_is_no_pattern_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(ConfigError, match="publish rule") as caught:
        add_module(tmp_path, "m", Module("/m", volatile=(pattern,)))
    assert caught.value.exit_code == 40


def test_paths_are_matched_as_publish_rules_match_them(subtests: pytest.Subtests) -> None:
    for pattern, paths in [
        ("/lastsync", {b"lastsync"}),
        ("TIME", {b"TIME", b"a/b/TIME"}),
        ("/project/trace/*", {b"project/trace/x", b"project/trace/_y"}),
        ("/stats/", {b"stats/x", b"stats/a/x"}),
        ("/a/**/x", {b"a/x", b"a/b/x"}),
        ("?IME", {b"TIME", b"a/b/TIME"}),
        ("x@", set()),
    ]:
        with subtests.test(pattern=pattern, paths=paths):
            everything = [
                *(b"lastsync", b"a/lastsync", b"TIME", b"a/b/TIME", b"xTIME", b"stats", b"stats/x"),
                *(b"stats/a/x", b"a/x", b"a/b/x", b"project/trace/x", b"project/trace/_y"),
                *(b"project/trace/a/x", b"project/trace"),
            ]
            assert {path for path in everything if Volatile([pattern])(path)} == paths
