"""The known kinds of repositories: data, read on first use.

Rule: the layout of a kind, and the files that change without a commit, are in `profiles.toml` and
nowhere in the code; client.toml takes precedence for its modules.
"""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from huai_client.config.load import Module
from huai_client.plan.order import Profile
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
    """Return the rules of files that change without a commit in any tree."""
    rules = [parse_rule(text) for text in volatile_rules(tuple(_tables()[_VOLATILE]["patterns"]))]
    return tuple(rule for rule in rules if isinstance(rule, VolatileRule))


@cache
def _tables() -> dict[str, Any]:
    """Read the file, once for all callers."""
    return tomllib.loads(_DATA.read_text(encoding="utf-8"))


@cache
def profiles() -> dict[str, Profile]:
    """Return all profiles by name, in the order in which they are tried."""
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
    """Parse publish rules; any but stage rules are left out."""
    rules = [parse_rule(text) for text in texts]
    return tuple(rule for rule in rules if isinstance(rule, StageRule))


def list_volatile_rules(module: Module, descriptor: Descriptor) -> list[VolatileRule]:
    """Return the rules of files that change without a commit.

    Those of the key `volatile`, if it is set; else those of `publish`, of the upstream, and the
    known ones.
    """
    if module.volatile is not None:
        rules = own_rules(volatile_rules(module.volatile))
    else:
        rules = [*own_rules(module.publish), *usable_rules(descriptor.publish), *known_volatile()]
    return [rule for rule in rules if isinstance(rule, VolatileRule)]
