"""A delayed deletion.  Pure."""

from typing import NamedTuple

from huai_schema.paths import RelPath


class DelayedDeletion(NamedTuple):
    """A path that is in no snapshot any more, and will be deleted later."""

    path: RelPath
    directory: bool
    since: int
    """The time at which its indices were replaced, seconds since the epoch; 0 for this run."""
