"""Formats numbers, sizes, durations and times for people.

Pure, except for the local time zone.
"""

import time
from collections.abc import Mapping

_LONG_UNITS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
_SHORT_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 file`, `2,000 files`; `plural` if it is not `noun` with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def human(size: float) -> str:
    """Format a number of bytes with a binary unit, such as `1.5 MiB`."""
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {_UNITS[-1]}"


def moment(seconds: int) -> str:
    """Format seconds since the epoch, of any size, as date and time in the local time zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):  # beyond the calendar
        return f"{seconds:,} s after 1970"


def format_span(seconds: float) -> str:
    """Format a duration in the largest unit of which it has two or more, else in seconds."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"


def long_span(seconds: int) -> str:
    """Format a duration in its two largest units, written out."""
    return " ".join(counted(count, name) for count, name in _parts(seconds, _LONG_UNITS))


def short_span(seconds: int) -> str:
    """Format a duration for a column: `7m12s`."""
    return "".join(f"{count}{name}" for count, name in _parts(seconds, _SHORT_UNITS))


def _parts(seconds: int, units: Mapping[str, int]) -> list[tuple[int, str]]:
    """Return count and name of at most two units, the largest that are not 0; for 0, the last.

    `units` are their seconds by name, the largest first, and the last has 1.
    """
    parts: list[tuple[int, str]] = []
    for name, size in units.items():
        count, seconds = divmod(seconds, size)
        if count or (size == 1 and not parts):
            parts.append((count, name))
    return parts[:2]
