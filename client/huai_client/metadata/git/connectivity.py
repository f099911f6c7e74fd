"""Checks that all objects of a commit are here, before the commit is recorded.

The engine reads only the differences from snapshots that are known to be complete, so that the cost
is that of the change.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from huai_client.metadata.git.limits import Work
from huai_client.metadata.git.objects import MissingObjectError, Objects
from huai_native import _native

_TREE = re.compile(rb"tree ([0-9a-f]{40})\n")
_PARENT = re.compile(rb"parent [0-9a-f]{40}\n")


class CommitHead(NamedTuple):
    """The tree and parents of a commit."""

    tree: bytes
    has_parents: bool


def read_commit(commit: str, objects: Objects) -> CommitHead:
    """Read the head of a commit; `MissingObjectError` if it is missing or malformed."""
    item = objects.find(bytes.fromhex(commit))
    top = _TREE.match(item.data) if item and item.kind == "commit" else None
    if item is None or top is None:
        raise MissingObjectError("the commit is missing", commit)
    return CommitHead(
        bytes.fromhex(top[1].decode()), _PARENT.match(item.data, top.end()) is not None
    )


def check_connected(
    tree: bytes, complete: Iterable[bytes], objects: Objects, work: Work | None = None
) -> None:
    """Raise `MissingObjectError` if any object below `tree` is missing.

    `complete` are trees whose objects are all here.  Memory grows with the number of trees here,
    not with how often they are named.
    """
    work = work or Work()
    work.check()
    missing, spent = _native.find_missing(tree, [*complete], objects, work.check, work=work.left)
    work.spend(spent)
    if missing is not None:
        oid, is_tree = missing
        raise MissingObjectError(
            f"the upstream left out {'a tree' if is_tree else 'an object'}", oid.hex()
        )
