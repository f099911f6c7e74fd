"""A part of a tree, for which the engine can be asked.  Pure."""

from typing import NamedTuple

from huai_schema.paths import ROOT, RelPath


class Scope(NamedTuple):
    """A path with everything below it, without some subdirectories."""

    top: RelPath = ROOT
    apart: frozenset[RelPath] = frozenset()
    """Paths that are left out, with everything below them."""
    after: bytes = b""
    """A key of `tree_order`: only paths after it belong to the scope; empty: all."""


WHOLE = Scope()
