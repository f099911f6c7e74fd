"""A part of a tree, and the order in which a tree is gone through.  Pure.

Tree order: a directory, its leaves by name, then its subdirectories, each with all below it.
"""

from functools import lru_cache
from typing import NamedTuple

from huai_schema.paths import ROOT, RelPath


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


def tree_order(path: RelPath, *, directory: bool) -> bytes:
    r"""A key that sorts entries in tree order; a directory's is the prefix of all below it.

    Each component is ended by \0 and begins with \0 for a leaf, \1 for a directory.
    """
    if not path:
        return b""
    above, _, name = path.rpartition(b"/")
    mark = b"\1" if directory else b"\0"
    return _below(above) + mark + name + b"\0"


@lru_cache(maxsize=64)
def _below(folder: bytes) -> bytes:
    """The key of a directory; kept, because siblings come one after the other."""
    if not folder:
        return b""
    return b"".join(b"\1" + name + b"\0" for name in folder.split(b"/"))
