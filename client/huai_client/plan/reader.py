"""What planning asks of the tree: names and kinds, through what it is given.

Pure: `tree.View` has these, and so has any tree that a test makes up.
"""

from stat import S_ISDIR
from typing import Protocol

from huai_schema.paths import RelPath


class StatResult(Protocol):
    """What a path is: `os.stat_result` has it."""

    @property
    def st_mode(self) -> int:
        """Kind and mode."""


class TreeReader(Protocol):
    """A tree that is only looked at."""

    def stat(self, path: RelPath) -> StatResult | None:
        """What stands at `path`, symlinks not followed; None: nothing."""

    def listing(self, path: RelPath) -> tuple[list[bytes], list[bytes]]:
        """Names in a directory: all but directories, then directories; `PathError`."""


def is_directory(tree: TreeReader, path: RelPath) -> bool:
    """Whether a directory stands at `path`."""
    status = tree.stat(path)
    return status is not None and S_ISDIR(status.st_mode)
