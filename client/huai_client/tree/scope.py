"""A part of a tree, as the engine compares it.  Pure."""

from typing import NamedTuple, Self

from huai_schema.paths import ROOT, RelPath, tree_order


class Scope(NamedTuple):
    """A path with everything below it, without some subdirectories."""

    top: RelPath = ROOT
    apart: frozenset[RelPath] = frozenset()
    """Paths to leave out, with everything below them."""
    after: bytes = b""
    """A key of `tree_order`: only paths after it are in the scope."""

    @classmethod
    def inside(cls, top: RelPath) -> Self:
        """Return the scope of everything below the directory `top`, without `top` itself."""
        # The keys of a directory's content begin with its own key, and are greater than this one.
        return cls(top, after=tree_order(top, directory=True) + b"\0")


WHOLE = Scope()
