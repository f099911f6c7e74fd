"""Partial mirrors: rsync's include and exclude rules, applied to metadata.

`Rules` decides which paths are mirrored and which are protected.  `Parser` reads rules in all forms
that rsync has; only `load` reads files.  `diff.selection.Selection` is a snapshot filtered by
rules.
"""

from huai_client.filters.grammar import FilterError
from huai_client.filters.load import load_rules, read_from
from huai_client.filters.parser import Parser
from huai_client.filters.rule import Rule
from huai_client.filters.rules import EVERYTHING, Decision, Rules

__all__ = [
    "EVERYTHING",
    "Decision",
    "FilterError",
    "Parser",
    "Rule",
    "Rules",
    "load_rules",
    "read_from",
]
