"""The kinds of repositories that are known: data, read when it is needed first.

Rule: what a kind looks like, and which files change without a commit, stands in `profiles.toml` and
nowhere in the code; what client.toml says of a module comes first.
"""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from huai_client.config.load import Module
from huai_client.plan.profiles.profile import Profile
from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.publish_rules import (
    StageRule,
    VolatileRule,
    own_rules,
    parse_rule,
    usable_rules,
    volatile_rules,
)

_DATA = Path(__file__).with_name("profiles.toml")
_COMMON, _VOLATILE = "common", "volatile"


@cache
def known_volatile() -> tuple[VolatileRule, ...]:
    """Files that change without a commit wherever there are any."""
    rules = [parse_rule(text) for text in volatile_rules(tuple(_tables()[_VOLATILE]["patterns"]))]
    return tuple(rule for rule in rules if isinstance(rule, VolatileRule))


@cache
def _tables() -> dict[str, Any]:
    """The file, read once for both."""
    return tomllib.loads(_DATA.read_text(encoding="utf-8"))


@cache
def profiles() -> dict[str, Profile]:
    """All of them by name, in the order in which they are tried."""
    tables = dict(_tables())
    common = _rules(tables.pop(_COMMON)["rules"])
    del tables[_VOLATILE]
    return {
        name: Profile(
            name,
            tuple(map(tuple, table["tops"])),
            _rules(table["rules"]) + common,
            tuple(table.get("signed", {}).items()),
        )
        for name, table in tables.items()
    }


def _rules(texts: list[str]) -> tuple[StageRule, ...]:
    rules = [parse_rule(text) for text in texts]
    return tuple(rule for rule in rules if isinstance(rule, StageRule))


def volatile_files(module: Module, descriptor: Descriptor) -> list[VolatileRule]:
    """Which files change without a commit: what client.toml says, else what is known of them."""
    if module.volatile is not None:
        rules = own_rules(volatile_rules(module.volatile))
    else:
        rules = [*own_rules(module.publish), *usable_rules(descriptor.publish), *known_volatile()]
    return [rule for rule in rules if isinstance(rule, VolatileRule)]
