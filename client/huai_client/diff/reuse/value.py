"""A local source for the content of a wanted file.  Pure."""

from typing import NamedTuple

from huai_schema.paths import RelPath


class Reuse(NamedTuple):
    """A local file with the content of a wanted one."""

    source: RelPath
    mtime: int
    """Of the source; its size is that of the wanted file."""
    names: int = 0
    """The wanted file may take over the inode if that has at most so many names."""
    sure: bool = True
    """Whether size and time of the source are enough; otherwise its digest is compared."""
    tree: str = ""
    """The top of the tree that holds it; empty: the module's own."""
    twin: bool = False
    """Whether the plan fetches `source` itself, so that both come by one transfer."""
