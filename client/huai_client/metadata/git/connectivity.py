"""Whether all that a commit holds is here: nothing may be recorded before that is certain.

The engine looks only at what differs from snapshots that are known to be complete, so that the cost
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
    """What stands at the top of a commit."""

    tree: bytes
    has_parents: bool


def read_commit(commit: str, objects: Objects) -> CommitHead:
    """The top of a commit; `MissingObjectError` if it is not here, or none."""
    found = objects.find(bytes.fromhex(commit))
    top = _TREE.match(found.data) if found and found.kind == "commit" else None
    if found is None or top is None:
        raise MissingObjectError("there is no such commit", commit)
    return CommitHead(
        bytes.fromhex(top[1].decode()), _PARENT.match(found.data, top.end()) is not None
    )


def check_connected(
    wanted: bytes, complete: Iterable[bytes], objects: Objects, work: Work | None = None
) -> None:
    """`MissingObjectError` if anything below the tree `wanted` is not here.

    `complete` are trees of which everything is here.  Memory grows with the trees that are here,
    however often they are named.
    """
    work = work or Work()
    work.check()
    found = _native.find_missing(wanted, [*complete], objects, work.check, work=work.left)
    missing, spent = found
    work.spend(spent)
    if missing is not None:
        oid, is_tree = missing
        raise MissingObjectError(
            f"the upstream left out {'a tree' if is_tree else 'an object'}", oid.hex()
        )
