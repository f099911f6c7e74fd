"""Spans of time as configuration files have them: `90s`, `12h`, `2d`.

Pure, and loads nothing: each poll passes here.
"""

SPAN = "^[0-9]{1,9}[smhdw]?$"
"""What `seconds` reads, as a regular expression."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}


def seconds(text: str) -> int:
    """A span of time such as 90s, 30m, 1h or 2d; a bare number is seconds."""
    unit = _UNITS.get(text[-1:])
    return int(text[:-1]) * unit if unit else int(text)
