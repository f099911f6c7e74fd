"""What the filter options of a call mean for a module.

Reads the files that they name, and nothing else.  Rule to keep: rules are compared, never
interpreted; where two lists of rules differ, the call is the real rsync's.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from huai_client.config import Module
from huai_client.dropin.call import Call, FilterOption
from huai_client.dropin.handover import RealRsyncError

if TYPE_CHECKING:  # most calls have no rules that count, and a poll must be quick
    from huai_client.filters import Parser, Rule

_TEMPORARY = (".~tmp~", ".~tmp~/", "/.~tmp~", "/.~tmp~/")
"""The folder of --delay-updates: huai neither mirrors nor deletes it, whatever is said of it."""
_WAYS = {"filter": ("risk ", "R ", "- ", "exclude ", "protect ", "P "), "exclude": ("", "- ")}
"""How a rule of one of these options may begin before such a pattern."""


def rules(call: Call, folder: Path, protect: Sequence[str] = ()) -> "tuple[Rule, ...] | None":
    """The rules of a call that say more than that `protect` is not touched.

    Files count from `folder`.  None: some are not understood, or protect something else.
    """
    options = [option for option in call.filters if not _is_temporary(option)]
    if not options:
        return ()
    from huai_client.filters import FilterError, Parser, read_from

    parser = Parser(read_from(folder), delete_excluded=call.delete_excluded)
    try:
        for option in options:
            _read(option, parser)
    except FilterError:
        return None
    covered = {*map(os.fsencode, protect)}
    temporary = {*map(os.fsencode, _TEMPORARY)}
    found = tuple(
        rule
        for rule in parser.rules
        if rule.pattern not in temporary and (rule.include or rule.pattern not in covered)
    )
    return found if all(rule.sender for rule in found) else None


def is_filter_of(call_rules: "tuple[Rule, ...]", module: Module, root: Path) -> bool:
    """Whether a call leaves out what the module's own filter leaves out."""
    if not module.filter:
        return not call_rules
    from huai_client.filters import load_rules

    own = load_rules(module.filter, root).rules
    return tuple(replace(rule, receiver=False) for rule in call_rules) == own


def as_filter(call_rules: "tuple[Rule, ...]") -> tuple[str, ...]:
    """The filter of a module that leaves out what a call does.

    Raises `RealRsyncError` for patterns that cannot stand in client.toml.
    """
    try:
        return tuple(replace(rule, receiver=False).text.decode() for rule in call_rules)
    except UnicodeDecodeError:
        raise RealRsyncError("no module has this destination, nor could one") from None


def _is_temporary(option: FilterOption) -> bool:
    ways = _WAYS.get(option.option, ())
    return option.text in {way + pattern for way in ways for pattern in _TEMPORARY}


def _read(option: FilterOption, parser: "Parser") -> None:
    text = os.fsencode(option.text)
    if option.option == "filter":
        parser.filter(text)
    elif option.option == "include":
        parser.include(text)
    elif option.option == "exclude":
        parser.exclude(text)
    elif option.option == "include-from":
        parser.include_from(text)
    else:
        parser.exclude_from(text)
