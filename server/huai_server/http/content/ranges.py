"""The ranges of a file that a request asks for (RFC 9110, section 14).

Pure.  Rule: no byte is named twice, so that no answer is longer than the file, but for the heads of
a bounded number of parts.
"""

import re
from typing import NamedTuple

MOST_RANGES = 200
"""Of one request: as Apache has it."""
_UNIT = "bytes"
_DIGITS = 1000
"""Python reads a few thousand; a position of so many is beyond the end of any file."""
_RANGE = re.compile(rf"([0-9]{{0,{_DIGITS}}})-([0-9]{{0,{_DIGITS}}})")


class Span(NamedTuple):
    """Bytes of a file: those from `start` up to, but without, `end`."""

    start: int
    end: int


def spans_of(header: str, size: int) -> list[Span] | None:
    """What a Range header asks for of a file of `size` bytes, in its order.

    None: all of the file, because it says nothing that is understood.  An empty list: nothing
    can be sent, because all of it is beyond the end, or there are too many.
    """
    unit, _, listed = header.partition("=")
    if unit.strip().lower() != _UNIT or not listed:
        return None
    if listed.count(",") >= MOST_RANGES:
        return []
    asked = [_parse(each.strip(" \t"), size) for each in listed.split(",") if each.strip(" \t")]
    if not asked or None in asked:
        return None
    found = [span for span in asked if span is not None and span.start < span.end]
    merged = _merged(found)
    # Nothing overlaps: the order that was asked for stays.
    return found if len(merged) == len(found) else merged


def _parse(text: str, size: int) -> Span | None:
    """One range, empty if it is beyond the end; None: it is none."""
    match = _RANGE.fullmatch(text)
    if match is None or text == "-":
        return None
    first, last = match.groups()
    if not first:
        return Span(max(0, size - int(last)), size)
    if last and int(last) < int(first):
        return None
    return Span(int(first), min(size, int(last) + 1) if last else size)


def _merged(spans: list[Span]) -> list[Span]:
    """Those that overlap or touch as one, sorted."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
