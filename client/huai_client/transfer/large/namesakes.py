"""Files whose names differ in their numbers only: other issues of one thing.  Pure.

`disk-20261121.img` most likely shares blocks with `disk-20261120.img`.
"""

import re
from collections.abc import Iterable

from huai_schema.codec.escaping import escape, unescape

_NUMBER = re.compile(rb"([0-9]+)")
_DIGITS_MOST = 40
"""Of one number: `int` refuses very long ones."""
_MOST = 3


def namesakes(name: bytes, leaves: bytes) -> list[bytes]:
    """At most three of the names in `leaves`, lines as in a manifest, the next older ones first.

    The names are those that have other numbers than `name`; without a number there is none.
    """
    parts = _NUMBER.split(escape(name))
    if len(parts) == 1:
        return []
    pattern = b"([0-9]{1,%d})" % _DIGITS_MOST
    same = pattern.join(re.escape(part) for part in parts[::2])
    here = _numbers(parts[1::2])
    lines = re.finditer(rb"(?m)^" + same + rb"\t", leaves)
    found = {_numbers(line.groups()): line[0].removesuffix(b"\t") for line in lines}
    older = sorted((key for key in found if key < here), reverse=True)
    newer = sorted(key for key in found if key > here)
    return [unescape(found[key]) for key in (older + newer)[:_MOST]]


def _numbers(texts: Iterable[bytes]) -> tuple[int, ...]:
    return tuple(int(text[:_DIGITS_MOST]) for text in texts)
