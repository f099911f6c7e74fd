"""Checks that all objects of a commit are here, before the commit is recorded.

The engine reads only the differences from snapshots that are known to be complete, so that the cost
is that of the change.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from huai_client.metadata.git.limits import WorkLimit
from huai_client.metadata.git.objects import Objects
from huai_native import _native
from huai_schema.errors import MissingObjectError

_TREE = re.compile(rb"tree ([0-9a-f]{40})\n")
_PARENT = re.compile(rb"parent [0-9a-f]{40}\n")


class CommitHead(NamedTuple):
    """The tree and parents of a commit."""

    tree: bytes
    has_parents: bool


def parse_head(commit: str, data: bytes) -> CommitHead:
    """Parse the content of a commit; `MissingObjectError` if it is malformed."""
    top = _TREE.match(data)
    if top is None:
        raise MissingObjectError("the commit is missing", commit)
    return CommitHead(bytes.fromhex(top[1].decode()), _PARENT.match(data, top.end()) is not None)


def read_commit(commit: str, objects: Objects) -> CommitHead:
    """Read the head of a commit; `MissingObjectError` if it is missing or malformed."""
    item = objects.find(bytes.fromhex(commit))
    return parse_head(commit, item.data if item and item.kind == "commit" else b"")


def check_connected(
    tree: bytes, complete: Iterable[bytes], objects: Objects, work: WorkLimit | None = None
) -> None:
    """Raise `MissingObjectError` if any object below `tree` is missing.

    `complete` are trees whose objects are all here.  Memory grows with the number of trees here,
    not with how often they are named.
    """
    work = work or WorkLimit()
    work.check()
    work.left -= _native.check_connected(tree, [*complete], objects, work.check, work=work.left)
