"""Whether all that a commit holds is here: nothing may be recorded before that is certain.

Reads trees through `Objects`.  Looks only at what differs from snapshots that are known to be
complete, so that the cost is that of the change.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from huai_client.metadata.git.limits import NAMING_WORK, Work
from huai_client.metadata.git.objects import MissingObjectError, Objects
from huai_schema.git.objects import TreeItem, decode_tree

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
    # A tree that many others name is walked once, whatever it is compared with.
    seen = {wanted}
    pending = [(wanted, frozenset(complete))]
    while pending:
        tree, known = pending.pop()
        if tree in known:
            continue
        above = [{item.name: item for item in _items(each, objects, work)} for each in known]
        for item in _items(tree, objects, work):
            if item.oid in seen:
                continue
            same = [items[item.name] for items in above if item.name in items]
            if any(each.oid == item.oid and each.is_tree == item.is_tree for each in same):
                continue
            # Before it is noted: what is not here has no end.
            if item.oid not in objects:
                raise MissingObjectError("the upstream left out an object", item.oid.hex())
            if item.is_tree:
                seen.add(item.oid)
                pending.append((item.oid, frozenset(each.oid for each in same if each.is_tree)))


def _items(tree: bytes, objects: Objects, work: Work) -> Iterable[TreeItem]:
    found = objects.find(tree)
    if found is None or found.kind != "tree":
        raise MissingObjectError("the upstream left out a tree", tree.hex())
    work.spend(NAMING_WORK * len(found.data))
    return decode_tree(found.data, tree.hex())
