"""Partial mirrors: rsync's include and exclude rules, decided on metadata.

`Rules` says what is mirrored and what is protected, `Parser` reads them in all their forms,
`load` alone reads files.  A snapshot seen through rules is `diff.selection.Selection`.
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
