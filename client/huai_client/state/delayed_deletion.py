"""A deletion that is put off: the value."""

from typing import NamedTuple

from huai_schema.paths import RelPath


class DelayedDeletion(NamedTuple):
    """A path that no snapshot names any more, and that is to be deleted later."""

    path: RelPath
    directory: bool
    since: int
    """When the indices that named it were replaced, seconds since the epoch; 0: in this run."""
