"""A path that waits to be deleted."""

from typing import NamedTuple

from huai_schema.paths import RelPath


class Waiting(NamedTuple):
    """A path that no snapshot names any more, and that is to be deleted later."""

    path: RelPath
    directory: bool
    since: int
    """When the indices that named it were replaced, seconds since the epoch; 0: in this run."""
