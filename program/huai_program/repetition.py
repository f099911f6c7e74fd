"""Finds the repeated key or table in a TOML text, and its lines.

The parser reports at best the line where the second one ends.  Pure.  For error messages only: a
string that looks like a key may mislead it.
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
    """The key; empty for the table itself."""

    @property
    def name(self) -> tuple[str, str]:
        """The table and key without quotes and blanks, for comparing."""
        plain = (re.sub(r"[\s\"']", "", each) for each in (self.table, self.key))
        return next(plain), next(plain)


def repetition(text: str, reason: str) -> str:
    """Return a message about the repetition in the TOML `text`.

    Empty if `reason`, the parser's message, is about something else.
    """
    match = _REPEATED.search(reason)
    if not match:
        return ""
    places = _places(text.split("\n")[: int(match[1]) if match[1] else None])
    if not places:
        return ""
    last = places[-1]
    where = f" in {last.table}" if last.key and last.table else ""
    message = f"line {last.line}: {last.key or last.table} is repeated{where}"
    first = next((each.line for each in places[:-1] if each.name == last.name), None)
    return f"{message}, first in line {first}" if first else message


def _places(lines: list[str]) -> list[_Place]:
    """Return line number, table and key of each header (with an empty key) and each assignment."""
    table = ""
    places: list[_Place] = []
    for number, line in enumerate(lines, 1):
        match = _LINE.match(line)
        if match is None:
            continue
        table = match["table"] or table
        places.append(_Place(number, table, match["key"] or ""))
    return places
