"""Spans of time as configuration files and options have them: `90s`, `12h`, `2d`.

Pure, and loads nothing: each poll passes here.
"""

_DIGITS = 9
SPAN = f"^[0-9]{{1,{_DIGITS}}}[smhdw]?$"
"""What `seconds` reads, as a regular expression."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}


def parse(text: str) -> int:
    """The same as `seconds`, of any text; raises `ValueError` with what a person is told."""
    digits = text[:-1] if text[-1:] in _UNITS else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        raise ValueError(f"{text!r} is not a duration such as 90s, 30m, 2h or 1d")
    return seconds(text)


def seconds(text: str) -> int:
    """A span of time such as 90s, 30m, 1h or 2d; a bare number is seconds."""
    unit = _UNITS.get(text[-1:])
    return int(text[:-1]) * unit if unit else int(text)
