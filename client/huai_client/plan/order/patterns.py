r"""Publish rules as one regular expression, so that a path is looked at once.

Pure.  Rule: no pattern, whoever wrote it, may take more than quadratic time.  So each `*`
and `**` but the last takes the first place that fits and never another one (atomic groups).
That is right, because what stands between two of them has a fixed shape.
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
"""Stands after the path of a symlink; no path holds it."""


class Named(NamedTuple):
    """What is matched: a path, seen from some directory, and whether it is a symlink."""

    path: bytes
    symlink: bool


class Matcher(Generic[T]):
    """Finds the first of several patterns that matches."""

    def __init__(self, pairs: Iterable[tuple[Pattern, T]]) -> None:
        """Each pattern, and what is found where it matches."""
        self._found: list[T] = []
        paths: list[tuple[int, bytes]] = []
        names: list[tuple[int, bytes]] = []
        for number, (pattern, found) in enumerate(pairs):
            self._found.append(found)
            first, *rest = pattern.components
            if first == "**" and len(rest) == 1 and rest != ["**"]:
                # Any directory: looking at the name alone is quicker.
                names.append((number, path_expression(pattern._replace(components=tuple(rest)))))
            else:
                paths.append((number, path_expression(pattern)))
        self._paths, self._names = _Any(paths), _Any(names)

    def find(self, named: Named) -> T | None:
        """What belongs to the first pattern that matches; None: none does."""
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
        """The number of the first that matches; a very large one if there is none."""
        match = self._any.match(path)
        return self._numbers[match.lastindex - 1] if match and match.lastindex else _NONE


def path_expression(pattern: Pattern) -> bytes:
    """A regular expression for a whole path, with the mark of a symlink behind it."""
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
    """A regular expression for one name; `byte` is what `?` stands for, and `*` for any number."""
    head, *parts = [re.escape(part).replace(rb"\?", byte) for part in re.split(rb"\*+", glob)]
    if not parts:
        return head
    middle = b"".join(b"(?>" + byte + b"*?" + part + b")" for part in parts[:-1] if part)
    return head + middle + byte + b"*" + parts[-1]


def _segments(components: Sequence[str]) -> list[list[str]]:
    """The components between each two `**`; those that follow each other are one."""
    found: list[list[str]] = [[]]
    for index, name in enumerate(components):
        if name != "**":
            found[-1].append(name)
        elif not index or components[index - 1] != "**":
            found.append([])
    return found


def below(top: RelPath, path: RelPath) -> bytes:
    """`path` as it is seen from `top`, a directory above it."""
    return path[len(top) + 1 :] if top else path
