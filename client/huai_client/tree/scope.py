"""A part of a tree.  Pure."""

from typing import NamedTuple

from huai_schema.paths import ROOT, RelPath, tree_order


class Scope(NamedTuple):
    """A directory or a leaf, with everything below it but for some subdirectories."""

    top: RelPath = ROOT
    apart: frozenset[RelPath] = frozenset()
    """Neither these nor what is below them, whatever stands there."""
    after: bytes = b""
    """Only what comes after this key of `tree_order`; empty: all."""

    def holds(self, path: RelPath, *, directory: bool) -> bool:
        """Whether `path` itself, which is below `top`, belongs to it."""
        if path in self.apart:
            return False
        return not self.after or tree_order(path, directory=directory) > self.after

    def enters(self, path: RelPath) -> bool:
        """Whether anything below the directory `path` may belong to it."""
        if path in self.apart:
            return False
        # Keys below a directory begin with its own.
        key = tree_order(path, directory=True)
        return key > self.after or self.after.startswith(key)


WHOLE = Scope()
