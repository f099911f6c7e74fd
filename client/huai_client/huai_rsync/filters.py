"""The comparison of a request's filter options with the filter of a module.

Reads only the files that the options name.  Rule to keep: filters are compared rule by rule and
never interpreted; if they differ, the real rsync runs.
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
"""The folder of --delay-updates, which huai neither mirrors nor deletes, by any rule."""
_WAYS = {"filter": ("risk ", "R ", "- ", "exclude ", "protect ", "P "), "exclude": ("", "- ")}
"""The beginnings of a rule before such a pattern, by option."""
_SUPERFLUOUS = {
    (option, way + each) for option, ways in _WAYS.items() for way in ways for each in _TEMPORARY
}


def rules(request: RsyncRequest, folder: Path, protect: Sequence[str] = ()) -> "tuple[Rule, ...]":
    """Return the rules of a request, without those that only repeat `protect` or name `.~tmp~`.

    Relative files are in `folder`.  Raises `RsyncNeededError` for rules that huai does not support,
    and for files that cannot be read.
    """
    options = [each for each in request.filters if (each.option, each.text) not in _SUPERFLUOUS]
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
        if rule.negated
        or (rule.pattern not in temporary and (rule.include or rule.pattern not in covered))
    )


def mirrored(call_rules: "tuple[Rule, ...]") -> "tuple[Rule, ...]":
    """Return the rules about mirrored paths, in the form of a module's filter."""
    return tuple(replace(rule, receiver=False) for rule in call_rules if rule.sender)


def undeletable(call_rules: "tuple[Rule, ...]") -> "Rules | None":
    """Return the rules about paths that must not be deleted here, or None."""
    protecting = [rule for rule in call_rules if rule.receiver]
    if not protecting:
        return None
    from huai_client.filters import Rules

    return Rules(protecting)


def unlike_filter(call_rules: "tuple[Rule, ...]", module: Module, root: Path) -> str:
    """Return the first difference between a call and the module's filter, or an empty text."""
    for one, other in zip_longest(mirrored(call_rules), _own(module, root)):
        if one != other:
            return f"{_spelt(one)} here is {_spelt(other)} in the filter of client.toml"
    return ""


def beyond_filter(call_rules: "tuple[Rule, ...]", module: Module, root: Path) -> str:
    """Return why a call may include more than the module's filter, or an empty text.

    The first rule that matches decides.  So a call includes no more if it has all rules of the
    filter in their order, and any others before the last of these exclude.
    """
    own = [*_own(module, root)]
    for rule in mirrored(call_rules):
        if own and rule == own[0]:
            del own[0]
        elif own and rule.include:
            return f"{_spelt(rule)} may include more than the filter of client.toml"
    return f"{_spelt(own[0])} of client.toml's filter is missing" if own else ""


def _own(module: Module, root: Path) -> "tuple[Rule, ...]":
    """Return the rules of the module's filter."""
    if not module.filter:
        return ()
    from huai_client.filters import load_rules

    return load_rules(module.filter, root).rules


def _spelt(rule: "Rule | None") -> str:
    """Return a rule as an error quotes it."""
    if rule is None:
        return "no rule"
    mark = "+" if rule.include else "-"
    return f"'{mark}{'!' if rule.negated else ''} {show(rule.pattern)}'"


def as_filter(call_rules: "tuple[Rule, ...]") -> tuple[str, ...]:
    """Return the filter of a module that excludes the same as a call.

    Raises `RsyncNeededError` for patterns that cannot be written in client.toml.
    """
    try:
        return tuple(rule.text.decode() for rule in mirrored(call_rules))
    except UnicodeDecodeError:
        raise RsyncNeededError("no module has or can have this destination") from None


def _read(option: FilterOption, parser: "Parser") -> None:
    """Add the rules of an option of rsync's to `parser`."""
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
