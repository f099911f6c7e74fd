"""The interface through which planning reads the tree: names and kinds.

Pure: `tree.View` implements it, and so do the trees of tests.
"""

from stat import S_ISDIR
from typing import Protocol

from huai_schema.paths import RelPath


class StatResult(Protocol):
    """The part of `os.stat_result` that planning uses."""

    @property
    def st_mode(self) -> int:
        """File type and mode."""


class TreeReader(Protocol):
    """A tree that planning reads and does not change."""

    def stat(self, path: RelPath) -> StatResult | None:
        """Return the status of `path` without following symlinks; None if it does not exist."""

    def listing(self, path: RelPath) -> tuple[list[bytes], list[bytes]]:
        """Return the names in a directory: leaves, then subdirectories; raises `PathError`."""


def is_directory(tree: TreeReader, path: RelPath) -> bool:
    """Return True if `path` is a directory."""
    status = tree.stat(path)
    return status is not None and S_ISDIR(status.st_mode)
