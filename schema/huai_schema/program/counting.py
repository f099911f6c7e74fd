"""Numbers of things, for people.

Pure.
"""


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 file`, `2,000 files`; `plural` where it is not `noun` with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
