"""Where the content of a wanted file is already.  Pure."""

from typing import NamedTuple

from huai_schema.paths import RelPath


class Reuse(NamedTuple):
    """Where the content of a wanted file is already."""

    source: RelPath
    mtime: int
    """Of the source; its size is that of the wanted file."""
    names: int = 0
    """The wanted file may take over an inode that has no more names than so many."""
    sure: bool = True
    """Whether the size and time of the source prove its content; else its digest has to."""
    tree: str = ""
    """The root of the tree that holds it; empty: the plan's own."""
    twin: bool = False
    """The plan brings `source` too: it has to come once only."""
