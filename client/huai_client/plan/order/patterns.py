"""The patterns of publish rules, matched by the engine.  Pure."""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from huai_native import _native
from huai_schema.codec.publish_rules import Pattern
from huai_schema.entries import File
from huai_schema.paths import RelPath

T = TypeVar("T")


class Matcher(Generic[T]):
    """Finds the first matching pattern of several."""

    def __init__(self, pairs: Iterable[tuple[Pattern, T]]) -> None:
        """`pairs`: patterns, each with the value that `find` returns for it."""
        pairs = list(pairs)
        self._values = [value for _, value in pairs]
        self._engine = _native.PublishPatterns([row(pattern) for pattern, _ in pairs])

    def find(self, path: RelPath, *, symlink: bool) -> T | None:
        """Return the value of the first matching pattern, if there is one."""
        (first,) = self._engine.first([path], symlink=symlink)
        return None if first is None else self._values[first]

    def places(self, files: Sequence[File]) -> list[int]:
        """Return the indices of the `files` that any pattern matches."""
        matches = self._engine.first(files, symlink=False)
        return [place for place, first in enumerate(matches) if first is not None]


def row(pattern: Pattern) -> tuple[list[bytes], bool]:
    """Return a pattern in the engine's form."""
    return [name.encode() for name in pattern.components], pattern.symlinks
