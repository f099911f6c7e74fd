"""Leaving out what two manifests begin and end with in common, before either is parsed.

Most changed manifests differ in a line or two of hundreds.  What both sides share was
checked when the older one was applied, and no difference can lie in it.  Cuts fall between
units only: a leaf of the manifest's own directory, or a subdirectory with all below it.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from huai_schema.codec.lines import count_files
from huai_schema.limits import DIGEST_BYTES

_UNIT = re.compile(rb"^[^/\t\n]+/\t", re.MULTILINE)
_DIRECTORY = re.compile(rb"^[^\t\n]*/\t", re.MULTILINE)
_SLASHED = re.compile(rb"\t>[^\t\n]*/\t")
"""A symlink whose target ends in a slash."""


class Text(NamedTuple):
    """A manifest, or listing, with its digest column (empty: no digests)."""

    text: bytes
    column: bytes


def without_common_units(old: Text, new: Text) -> tuple[Text, Text]:
    """Both without the whole units that they begin and end with in common."""
    return _without_common(old, new, _unit_before, _unit_after)


def without_common_lines(old: Text, new: Text) -> tuple[Text, Text]:
    """Both without the lines that they begin and end with in common; there are only leaves."""
    return _without_common(old, new, _line_before, _line_after)


def _without_common(
    old: Text,
    new: Text,
    cut_before: Callable[[bytes, int], int],
    cut_after: Callable[[bytes, int], int],
) -> tuple[Text, Text]:
    if bool(old.column) != bool(new.column):
        return old, new
    a, b = old.text, new.text
    if old.column and not (_fits(old) and _fits(new)):
        return old, new
    shorter = min(len(a), len(b))
    head = cut_before(a, _longest(shorter, lambda n: a[:n] == b[:n]))
    tail = _longest(shorter - head, lambda n: a[len(a) - n :] == b[len(b) - n :])
    tail = min(len(a) - cut_after(a, len(a) - tail), len(b) - cut_after(b, len(b) - tail))
    first = last = 0
    if old.column:
        first = DIGEST_BYTES * _files(a[:head])
        if old.column[:first] != new.column[:first]:
            head = first = 0
        last = DIGEST_BYTES * _files(a[len(a) - tail :])
        if old.column[len(old.column) - last :] != new.column[len(new.column) - last :]:
            tail = last = 0
    return _between(old, head, tail, first, last), _between(new, head, tail, first, last)


def _between(whole: Text, head: int, tail: int, first: int, last: int) -> Text:
    """Without so many bytes of text, and of the column, at either end."""
    text, column = whole
    column = column[first : len(column) - last]
    return Text(text[head : len(text) - tail], column if column.strip(b"\0") else b"")


def _line_before(text: bytes, end: int) -> int:
    """The start of the line that `end` lies in."""
    return text.rfind(b"\n", 0, end) + 1


def _line_after(text: bytes, begin: int) -> int:
    """The first start of a line at or after `begin`."""
    if not begin:
        return 0
    found = text.find(b"\n", begin - 1)
    return len(text) if found < 0 else found + 1


def _unit_before(text: bytes, end: int) -> int:
    """The start of the unit that `end` lies in, or of one before it."""
    position = end
    while (position := text.rfind(b"/\t", 0, position)) >= 0:
        start = text.rfind(b"\n", 0, position) + 1
        # A symlink's target may end in a slash too, but a tab comes before it.
        if text.startswith(b"./\t", start):
            break
        if _UNIT.match(text, start):
            return start
    return _line_before(text, end)


def _unit_after(text: bytes, begin: int) -> int:
    """The first start of a unit at or after `begin`; the end of the text if there is none."""
    found = _UNIT.search(text, begin)
    if found:
        return found.start()
    if _DIRECTORY.search(text, len(_own_line(text))):
        return len(text)
    return _line_after(text, begin)


def _own_line(text: bytes) -> bytes:
    return text[: text.find(b"\n") + 1] if text.startswith(b"./\t") else b""


def _files(text: bytes) -> int:
    """Regular files among the lines of a manifest; too few if an owner's name ends in a slash."""
    directories = text.count(b"/\t")
    if directories and b"\t>" in text:
        directories -= len(_SLASHED.findall(text))
    return count_files(text) - directories


def _fits(text: Text) -> bool:
    """Whether `_files` counts right here, so that the column can be cut by it."""
    return len(text.column) == DIGEST_BYTES * _files(text.text)


def _longest(most: int, equal: Callable[[int], bool]) -> int:
    """The largest n up to `most` for which `equal` holds; it holds for all below it."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if equal(middle):
            low = middle
        else:
            high = middle - 1
    return low
