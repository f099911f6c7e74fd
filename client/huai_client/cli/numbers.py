"""Numbers as rsync parses them in options, and shows them in reports.

Pure.  Source: rsync(1), "--human-readable", "--max-size" and "--bwlimit".
"""

import re

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?)(?:([KMG])(B|IB)?|(B))?", re.IGNORECASE)
_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3}
_LEAST = 512
"""The least bytes a second that rsync accepts; also its offset for rounding."""
_MOST = 1 << 62
_UNITS = "KMGTP"


def kibibytes(text: str) -> int | None:
    """Parse a value of `--bwlimit` to KiB/s, rounded; None if rsync would refuse it."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    unit = "B" if match[4] else (match[2] or "K").upper()
    base = 1000 if match[3] and match[3].upper() == "B" else 1024
    size = float(match[1]) * base ** _POWERS[unit]
    if 0 < size < _LEAST or size > _MOST:
        return None
    return int(size + _LEAST) // 1024


def format_number(number: float, human: int, *, decimals: int = 0) -> str:
    """Format a number like rsync; `human`: 0 digits, 1 commas, 2 units of 1000, 3 of 1024."""
    base = 1000 if human == 2 else 1024
    if human > 1 and number >= base:
        power = 0
        while number >= base and power < len(_UNITS):
            number /= base
            power += 1
        return f"{number:.2f}{_UNITS[power - 1]}"
    return f"{number:,.{decimals}f}" if human else f"{number:.{decimals}f}"
