"""Sizes as configuration files and options have them: `512M`, `4G`.

Pure, and loads nothing: each poll passes here.
"""

from typing import ClassVar, Self

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_DIGITS = 18


class Size(int):
    """Bytes."""

    __slots__ = ()

    least: ClassVar[int] = 0

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read a value of a configuration file; `ValueError` with what a person is told."""
        text = str(value) if type(value) is int else value
        if isinstance(text, str):
            unit = _UNITS.get(text[-1:].upper(), 1)
            digits = text[:-1] if unit > 1 else text
            known = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS
            if known and (size := int(digits) * unit) >= cls.least:
                return cls(size)
        above = f" above {cls.least - 1}" if cls.least else ""
        raise ValueError(f"is not a size in bytes{above} (examples: 1048576, 512M, 4G)")


class SomeBytes(Size):
    """At least one byte."""

    __slots__ = ()
    least = 1
