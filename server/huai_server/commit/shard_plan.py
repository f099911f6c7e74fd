"""The directories that are scanned as shards: the largest ones that are not too large.

Reads the last commit, or the names in the root of a tree without one.
"""

import os
from pathlib import Path

from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import is_within
from huai_server.config.tables import Module

_SMALL = 64
"""A shard has at least this part of the limit: a smaller one costs more than it saves."""


class _Open:
    """A directory whose subdirectories are still to come."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.entries = 0
        self.shards: list[tuple[bytes, int]] = []
        """The shards below it, if it is not one."""


def plan_shards(past: Snapshot | None, module: Module) -> dict[bytes, int]:
    """Return the paths of the shards with their entries, which are 0 before the first commit.

    From the top down, a directory is cut into its subdirectories until it has at most
    `shard_entries`; far smaller ones are no shards.  A tree of at most so many has no shards.
    Before the first commit the shards are the directories in the root.
    """
    if past is None:
        with os.scandir(bytes(Path(module.path))) as entries:
            names = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
        return dict.fromkeys(sorted(names), 0)
    limit = module.engine.shard_entries
    stack: list[_Open] = []

    def close() -> None:
        """Take off the last directory: as a shard, as those below it, or as too small."""
        closed = stack.pop()
        above = stack[-1]
        above.entries += closed.entries
        if closed.entries > limit:
            above.shards += closed.shards
        elif closed.entries * _SMALL > limit:
            above.shards.append((closed.path, closed.entries))

    for listing in past.listings():
        while stack and not is_within(listing.path, stack[-1].path):
            close()
        stack.append(_Open(listing.path))
        stack[-1].entries = 1 + listing.leaves.count(b"\n")
    while len(stack) > 1:
        close()
    top = stack[0]
    return dict(top.shards) if top.entries > limit else {}
