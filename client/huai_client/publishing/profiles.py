"""The kinds of repositories that are known: data, read when it is needed first.

Rule: what a kind looks like stands in `profiles.toml` and nowhere in the code.
"""

import tomllib
from functools import cache
from pathlib import Path

from huai_client.publishing.order import Profile
from huai_schema.publishing import StageRule, parse_rule

_COMMON = "common"
_DATA = Path(__file__).with_name("profiles.toml")


@cache
def profiles() -> dict[str, Profile]:
    """All of them by name, in the order in which they are tried."""
    tables = tomllib.loads(_DATA.read_text(encoding="utf-8"))
    common = _rules(tables.pop(_COMMON)["rules"])
    return {
        name: Profile(name, tuple(map(tuple, table["tops"])), _rules(table["rules"]) + common)
        for name, table in tables.items()
    }


def _rules(texts: list[str]) -> tuple[StageRule, ...]:
    rules = [parse_rule(text) for text in texts]
    return tuple(rule for rule in rules if isinstance(rule, StageRule))
