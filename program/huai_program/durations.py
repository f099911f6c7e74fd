"""Durations in configuration files and options: `90s`, `12h`, `2d`.

Pure, and loads nothing, because each poll imports it.
"""

from collections.abc import Mapping
from typing import ClassVar, Self

_DIGITS = 9
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}


class Duration(str):
    """A duration as written; a bare number means seconds."""

    __slots__ = ()

    least: ClassVar[int] = 0
    """The minimum in seconds."""
    words: ClassVar[tuple[str, ...]] = ()
    """Words that are allowed instead of a duration."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse a configured number, text or one of `words`; raises `ValueError` for others."""
        duration = amount(value, _UNITS, digits=_DIGITS)
        if value not in cls.words and (duration is None or duration < cls.least):
            above = f" above {cls.least - 1}" if cls.least else ""
            raise ValueError(f"is not a duration{above} (examples: 90, 30m, 12h, 2d)")
        return cls(value)


class TimeLimit(Duration):
    """A duration that is not 0."""

    __slots__ = ()
    least = 1


def amount(value: object, units: Mapping[str, int], *, digits: int = 18) -> int | None:
    """Parse a whole number, or a text of at most `digits` digits with one of `units` or without.

    Returns the number times the unit; None if `value` is neither.
    """
    text = str(value) if type(value) is int else value
    if not isinstance(text, str):
        return None
    unit = units.get(text[-1:])
    number = text[:-1] if unit else text
    is_valid = number.isascii() and number.isdigit() and len(number) <= digits
    return int(number) * (unit or 1) if is_valid else None


def parse(text: str) -> int:
    """Parse the value of an option to seconds; `ValueError` with a message for people."""
    try:
        return seconds(Duration.parse(text))
    except ValueError:
        raise ValueError(f"{text!r} is not a duration such as 90s, 30m, 2h or 1d") from None


def seconds(text: str) -> int:
    """Return the seconds of a `Duration`, which must not be one of its `words`."""
    unit = _UNITS.get(text[-1:])
    return int(text[:-1]) * unit if unit else int(text)
