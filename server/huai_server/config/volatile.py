"""Matching of volatile paths: files that change without a commit."""

from collections.abc import Iterable

from huai_native._native import PublishPatterns
from huai_schema.codec.publish_rules import Pattern


class Volatile:
    """A set of patterns in the syntax of publish rules (FORMAT.md, "Publish rules")."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Parse the patterns; raises `FormatError` for a text that is not a pattern."""
        parsed = [Pattern.parse(text) for text in patterns]
        self._patterns = PublishPatterns(
            [([*map(str.encode, each.components)], each.symlinks) for each in parsed]
        )

    def __call__(self, path: bytes) -> bool:
        """Return True if the regular file at `path` is volatile."""
        return self._patterns.first([path], symlink=False) != [None]
