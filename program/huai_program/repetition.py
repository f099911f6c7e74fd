"""Finds the key or table that stands twice in a TOML text, and its lines.

The parser only says that there is one, and at best the line where the second one ends.  Pure.  For
error messages only: a text in quotes that looks like a key may mislead it.
"""

import re
from typing import NamedTuple

_NAME = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_NAMES = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_LINE = re.compile(rf"\s*(?:(?P<table>\[\[?\s*{_NAMES}\s*\]\]?)|(?P<key>{_NAMES})\s*=)")
_REPEATED = re.compile(
    r"(?:Cannot overwrite|Cannot declare|Cannot mutate).*?\((?:at line (\d+),|at end)", re.DOTALL
)


class _Place(NamedTuple):
    """A line that begins a table or sets a key."""

    line: int
    table: str
    key: str
    """Empty: the table itself."""

    @property
    def name(self) -> tuple[str, str]:
        """Table and key without quotes and blanks, for comparing them."""
        plain = (re.sub(r"[\s\"']", "", each) for each in (self.table, self.key))
        return next(plain), next(plain)


def repetition(text: str, said: str) -> str:
    """A message for `text`, of which the parser `said` that it repeats something; else empty."""
    found = _REPEATED.search(said)
    if not found:
        return ""
    places = _places(text.split("\n")[: int(found[1]) if found[1] else None])
    if not places:
        return ""
    last = places[-1]
    where = f" in {last.table}" if last.key and last.table else ""
    told = f"line {last.line}: {last.key or last.table} stands twice{where}"
    first = next((each.line for each in places[:-1] if each.name == last.name), None)
    return f"{told}, first in line {first}" if first else told


def _places(lines: list[str]) -> list[_Place]:
    table = ""
    found: list[_Place] = []
    for number, line in enumerate(lines, 1):
        match = _LINE.match(line)
        if match is None:
            continue
        table = match["table"] or table
        found.append(_Place(number, table, match["key"] or ""))
    return found
