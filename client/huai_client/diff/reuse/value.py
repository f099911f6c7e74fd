"""A local source for the content of a file to fetch.  Pure."""

from typing import NamedTuple

from huai_schema.paths import RelPath


class Reuse(NamedTuple):
    """A local file with the content of a file to fetch."""

    source: RelPath
    mtime: int
    """The time of the source in ns; its size is that of the file to fetch."""
    names: int = 0
    """The highest link count at which the file may take over the inode."""
    sure: bool = True
    """True if size and time of the source are enough; otherwise its digest is compared."""
    tree: str = ""
    """The top of the tree that holds it; empty for the module's own tree."""
    twin: bool = False
    """True if the plan fetches `source` itself, so that one transfer serves both."""
