"""A part of a tree, for which the engine can be asked.  Pure."""

from typing import NamedTuple, Self

from huai_schema.paths import ROOT, RelPath, tree_order


class Scope(NamedTuple):
    """A path with everything below it, without some subdirectories."""

    top: RelPath = ROOT
    apart: frozenset[RelPath] = frozenset()
    """Paths that are left out, with everything below them."""
    after: bytes = b""
    """A key of `tree_order`: only paths after it belong to the scope; empty: all."""

    @classmethod
    def inside(cls, top: RelPath) -> Self:
        """All below the directory `top`, without that itself."""
        # The key of what is in a directory begins with that one's, and is greater than this.
        return cls(top, after=tree_order(top, directory=True) + b"\0")


WHOLE = Scope()
