r"""Publish rules as one regular expression, so that each path is matched once.

Pure.  Rule to keep: no pattern takes more than quadratic time, whoever wrote it.  So each `*` and
`**` but the last stops at the first place where the rest up to the next one fits, and is never
retried (atomic groups).  This loses no match: the text between two stars has a fixed shape.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from huai_schema.codec.publish_rules import Pattern
from huai_schema.paths import RelPath, basename

T = TypeVar("T")

_DIRECTORIES = rb"(?:[^/\0]++/)"
_NONE = 1 << 30
"""Larger than the number of any pattern."""

_MARK = b"\0"
"""Follows the path of a symlink; no path contains it."""


class Named(NamedTuple):
    """What is matched: a path relative to some directory, and whether it is a symlink."""

    path: bytes
    symlink: bool


class Matcher(Generic[T]):
    """Finds the first of several patterns that matches."""

    def __init__(self, pairs: Iterable[tuple[Pattern, T]]) -> None:
        """`pairs`: patterns, each with the value that `find` returns for it."""
        self._found: list[T] = []
        paths: list[tuple[int, bytes]] = []
        names: list[tuple[int, bytes]] = []
        for number, (pattern, found) in enumerate(pairs):
            self._found.append(found)
            first, *rest = pattern.components
            if first == "**" and len(rest) == 1 and rest != ["**"]:
                # `**/NAME` matches in any directory: matching the name alone is quicker.
                names.append((number, path_expression(pattern._replace(components=tuple(rest)))))
            else:
                paths.append((number, path_expression(pattern)))
        self._paths, self._names = _Any(paths), _Any(names)

    def find(self, named: Named) -> T | None:
        """The value of the first pattern that matches; None: none does."""
        path = named.path + _MARK if named.symlink else named.path
        first = min(self._paths.first(path), self._names.first(basename(path)))
        return self._found[first] if first < len(self._found) else None


class _Any:
    """Some of the patterns, as one regular expression."""

    def __init__(self, numbered: list[tuple[int, bytes]]) -> None:
        self._numbers = [number for number, _ in numbered]
        parts = [b"(%b)" % text for _, text in numbered]
        self._any = re.compile(b"|".join(parts) or rb"(?!)", re.DOTALL)

    def first(self, path: bytes) -> int:
        """The number of the first pattern that matches; `_NONE` if none does."""
        match = self._any.match(path)
        return self._numbers[match.lastindex - 1] if match and match.lastindex else _NONE


def path_expression(pattern: Pattern) -> bytes:
    """A regular expression for a whole path, followed by the mark of a symlink."""
    end = rb"\0\Z" if pattern.symlinks else rb"\0?\Z"
    segments = _segments(pattern.components)
    first, *later = segments
    text = b"".join(component(name.encode()) + b"/" for name in first)
    if not later:
        return text.removesuffix(b"/") + end
    for segment in later[:-1]:
        inner = b"".join(component(name.encode()) + b"/" for name in segment)
        text += b"(?>" + _DIRECTORIES + b"*?" + inner + b")"
    last = b"/".join(component(name.encode()) for name in later[-1])
    return text + (_DIRECTORIES + b"*" + last if last else rb"[^\0]+") + end


def component(glob: bytes, byte: bytes = rb"[^/\0]") -> bytes:
    """A regular expression for one name; `byte` is one for what `?` matches."""
    head, *parts = [re.escape(part).replace(rb"\?", byte) for part in re.split(rb"\*+", glob)]
    if not parts:
        return head
    middle = b"".join(b"(?>" + byte + b"*?" + part + b")" for part in parts[:-1] if part)
    return head + middle + byte + b"*" + parts[-1]


def _segments(components: Sequence[str]) -> list[list[str]]:
    """The components before, between and after `**`; adjacent `**` count as one."""
    found: list[list[str]] = [[]]
    for index, name in enumerate(components):
        if name != "**":
            found[-1].append(name)
        elif not index or components[index - 1] != "**":
            found.append([])
    return found


def below(top: RelPath, path: RelPath) -> bytes:
    """`path` relative to `top`, a directory above it."""
    return path[len(top) + 1 :] if top else path
