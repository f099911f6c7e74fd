"""Sizes in configuration files and options: `512M`, `4G`.

Pure, and loads nothing, because each poll imports it.
"""

from typing import ClassVar, Self

from huai_program.durations import amount

_UNITS = {unit: 1 << 10 * power for power, unit in enumerate("KMGTP", 1)}
_UNITS |= {unit.lower(): size for unit, size in _UNITS.items()}


class Size(int):
    """A size in bytes."""

    __slots__ = ()

    least: ClassVar[int] = 0

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse a number, or a text such as `4G`; `ValueError` if malformed or below `least`."""
        size = amount(value, _UNITS)
        if size is None or size < cls.least:
            above = f" above {cls.least - 1}" if cls.least else ""
            raise ValueError(f"is not a size in bytes{above} (examples: 1048576, 512M, 4G)")
        return cls(size)


class SomeBytes(Size):
    """A size of at least one byte."""

    __slots__ = ()
    least = 1
