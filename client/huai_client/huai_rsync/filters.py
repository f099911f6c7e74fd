"""Comparing the filter options of a request with the filter of a module.

Reads the files that the options name, and nothing else.  Rule to keep: filters are compared rule by
rule and never interpreted; if they differ, the real rsync runs.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from huai_client.config.load import Module
from huai_client.huai_rsync.exec_rsync import RsyncNeededError
from huai_client.huai_rsync.request import FilterOption, RsyncRequest
from huai_schema.paths import show

if TYPE_CHECKING:  # most calls have no rules that count, and a poll must be quick
    from huai_client.filters import Parser, Rule, Rules

_TEMPORARY = (".~tmp~", ".~tmp~/", "/.~tmp~", "/.~tmp~/")
"""The folder of --delay-updates: huai neither mirrors nor deletes it, whatever is said of it."""
_WAYS = {"filter": ("risk ", "R ", "- ", "exclude ", "protect ", "P "), "exclude": ("", "- ")}
"""How a rule of one of these options may begin before such a pattern."""


def rules(request: RsyncRequest, folder: Path, protect: Sequence[str] = ()) -> "tuple[Rule, ...]":
    """The rules of a request, without those that only repeat `protect`.

    Relative files are in `folder`.  Raises `RsyncNeededError` for rules that huai does not have.
    """
    options = [option for option in request.filters if not _is_temporary(option)]
    if not options:
        return ()
    from huai_client.filters import FilterError, Parser, read_from

    parser = Parser(read_from(folder), delete_excluded=request.delete_excluded)
    try:
        for option in options:
            _read(option, parser)
    except FilterError as error:
        raise RsyncNeededError(error.message) from error
    covered = {*map(os.fsencode, protect)}
    temporary = {*map(os.fsencode, _TEMPORARY)}
    return tuple(
        rule
        for rule in parser.rules
        if rule.pattern not in temporary and (rule.include or rule.pattern not in covered)
    )


def mirrored(call_rules: "tuple[Rule, ...]") -> "tuple[Rule, ...]":
    """The rules that say what is mirrored, as a module's filter has them."""
    return tuple(replace(rule, receiver=False) for rule in call_rules if rule.sender)


def undeletable(call_rules: "tuple[Rule, ...]") -> "Rules | None":
    """The rules that say what is not deleted here; None: there are none."""
    found = [rule for rule in call_rules if rule.receiver]
    if not found:
        return None
    from huai_client.filters import Rules

    return Rules(found)


def unlike_filter(call_rules: "tuple[Rule, ...]", module: Module, root: Path) -> str:
    """The first rule in which a call and the module's own filter differ; empty: they agree."""
    wanted = mirrored(call_rules)
    for one, other in zip_longest(wanted, _own(module, root)):
        if one != other:
            here, there = _spelt(one), _spelt(other)
            return f"{here} here is {there} in the filter of client.toml"
    return ""


def beyond_filter(call_rules: "tuple[Rule, ...]", module: Module, root: Path) -> str:
    """The first rule that may let more through than the module's filter; empty: there is none.

    As the first rule that matches decides, a call that holds the filter's rules in their order
    lets through no more than these if whatever else it says before the last of them excludes.
    """
    own = [*_own(module, root)]
    for rule in mirrored(call_rules):
        if own and rule == own[0]:
            del own[0]
        elif own and rule.include:
            return f"{_spelt(rule)} may let through more than the filter of client.toml"
    return f"{_spelt(own[0])} of client.toml's filter is missing" if own else ""


def _own(module: Module, root: Path) -> "tuple[Rule, ...]":
    if not module.filter:
        return ()
    from huai_client.filters import load_rules

    return load_rules(module.filter, root).rules


def _spelt(rule: "Rule | None") -> str:
    if rule is None:
        return "no rule"
    mark = "+" if rule.include else "-"
    return f"'{mark}{'!' if rule.negated else ''} {show(rule.pattern)}'"


def as_filter(call_rules: "tuple[Rule, ...]") -> tuple[str, ...]:
    """The filter of a module that leaves out what a call does.

    Raises `RsyncNeededError` for patterns that cannot stand in client.toml.
    """
    try:
        return tuple(rule.text.decode() for rule in mirrored(call_rules))
    except UnicodeDecodeError:
        raise RsyncNeededError("no module has this destination, nor could one") from None


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
