"""The patterns of publish rules, matched by the engine.  Pure."""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from huai_native import _native
from huai_schema.codec.publish_rules import Pattern
from huai_schema.entries import File
from huai_schema.paths import RelPath

T = TypeVar("T")


class Matcher(Generic[T]):
    """Finds the first of several patterns that matches."""

    def __init__(self, pairs: Iterable[tuple[Pattern, T]]) -> None:
        """`pairs`: patterns, each with the value that `find` returns for it."""
        pairs = list(pairs)
        self._found = [found for _, found in pairs]
        self._engine = _native.PublishPatterns([row(pattern) for pattern, _ in pairs])

    def find(self, path: RelPath, *, symlink: bool) -> T | None:
        """The value of the first pattern that matches; None: none does."""
        (first,) = self._engine.first([path], symlink=symlink)
        return None if first is None else self._found[first]

    def places(self, files: Sequence[File]) -> list[int]:
        """The places of those of `files` that any pattern matches."""
        found = self._engine.first(files, symlink=False)
        return [place for place, first in enumerate(found) if first is not None]


def row(pattern: Pattern) -> tuple[list[bytes], bool]:
    """A pattern as the engine takes it."""
    return [name.encode() for name in pattern.components], pattern.symlinks
