"""An upstream's publish rules: from server.toml into the descriptor."""

from pathlib import Path

import pytest

from huai_schema.program.configuration import ConfigError
from huai_server.config import Module, add_module, load

RULES = ("pointers /serial", "profile apt /debian")


def test_rules_are_read(tmp_path: Path) -> None:
    add_module(tmp_path, "m", Module("/m", publish=RULES))
    assert load(tmp_path).module("m").publish == RULES


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("pointer /serial", "begins with none of payload, indices, pointers, profile"),
        ("pointers", "is not a publish rule"),
        ("pointers a//b", "is not a pattern"),
        ("profile apt debian", "is not a publish rule"),
    ],
)
def test_a_rule_that_is_none(tmp_path: Path, rule: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        add_module(tmp_path, "m", Module("/m", publish=(rule,)))
