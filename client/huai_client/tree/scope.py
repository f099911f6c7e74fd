"""A part of a tree.  Pure."""

from typing import NamedTuple

from huai_schema.paths import ROOT, RelPath, tree_order


class Scope(NamedTuple):
    """A path with everything below it, without some subdirectories."""

    top: RelPath = ROOT
    apart: frozenset[RelPath] = frozenset()
    """Paths that are left out, with everything below them."""
    after: bytes = b""
    """A key of `tree_order`: only paths after it belong to the scope; empty: all."""

    def holds(self, path: RelPath, *, directory: bool) -> bool:
        """Whether `path`, which is `top` or below it, belongs to the scope."""
        if path in self.apart:
            return False
        return not self.after or tree_order(path, directory=directory) > self.after

    def enters(self, path: RelPath) -> bool:
        """Whether a path below the directory `path` may belong to the scope."""
        if path in self.apart:
            return False
        # The keys of paths below a directory begin with its own key.
        key = tree_order(path, directory=True)
        return key > self.after or self.after.startswith(key)


WHOLE = Scope()
