"""Which paths a configuration calls volatile: files that change without a commit.

Pure.  It is asked only about files that are not as they were, so it may be slow.
"""

import re
from collections.abc import Iterable

from huai_schema.codec.publish_rules import Pattern

_ANY_DEPTH = "**"


class Volatile:
    """Patterns as publish rules spell them (FORMAT.md, "Publish rules")."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Raises `FormatError` for a text that is not a pattern."""
        parsed = [Pattern.parse(text) for text in patterns]
        self._expressions = [
            re.compile(_expression(each.components), re.DOTALL)
            for each in parsed
            if not each.symlinks
        ]

    def __call__(self, path: bytes) -> bool:
        """Whether the regular file at `path` is volatile."""
        return any(each.fullmatch(path) for each in self._expressions)


def _expression(components: tuple[str, ...]) -> bytes:
    """A regular expression for a whole path."""
    *above, last = components
    parts = [rb"(?:[^/]+/)*" if name == _ANY_DEPTH else _component(name) + b"/" for name in above]
    return b"".join(parts) + (rb"(?:[^/]+/)*[^/]+" if last == _ANY_DEPTH else _component(last))


def _component(glob: str) -> bytes:
    special = {"?": rb"[^/]", "*": rb"[^/]*"}
    return b"".join(special.get(char, re.escape(char.encode())) for char in glob)
