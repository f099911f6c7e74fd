"""The interface through which planning looks at the tree: names and kinds.

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
    """A tree that planning looks at and does not change."""

    def stat(self, path: RelPath) -> StatResult | None:
        """The status of `path`, symlinks not followed; None: nothing stands there."""

    def listing(self, path: RelPath) -> tuple[list[bytes], list[bytes]]:
        """The names in a directory: leaves, then subdirectories; raises `PathError`."""


def is_directory(tree: TreeReader, path: RelPath) -> bool:
    """Whether a directory stands at `path`."""
    status = tree.stat(path)
    return status is not None and S_ISDIR(status.st_mode)
