"""Checks that all objects of a commit are here, before the commit is recorded.

The engine reads only the differences from snapshots that are known to be complete, so that the cost
is that of the change.
"""

from collections.abc import Iterable
from typing import Protocol

from huai_client.metadata.git.limits import WorkLimit
from huai_client.metadata.git.objects import Objects
from huai_native import _native
from huai_native._native import Filter, MissingObjects, Packs
from huai_schema.codec.commits import CommitObject, decode_commit
from huai_schema.codec.descriptor import read_root
from huai_schema.errors import MissingObjectError
from huai_schema.git.objects import ObjectReader


class PackReader(ObjectReader, Protocol):
    """A reader of the objects of `packs`."""

    packs: Packs


def read_commit(commit: str, objects: Objects) -> CommitObject:
    """Read a commit.

    Raises `MissingObjectError` if it is missing, `FormatError` if it is malformed.
    """
    item = objects.find(bytes.fromhex(commit))
    if item is None or item.kind != "commit":
        raise MissingObjectError("the commit is missing", commit)
    return decode_commit(item.data)


def check_connected(
    tree: bytes, complete: Iterable[bytes], objects: Objects, work: WorkLimit | None = None
) -> None:
    """Raise `MissingObjectError` if any object below `tree` is missing; subtract from `work`.

    `complete` are trees whose objects are all here.  Memory grows with the number of trees here,
    not with how often they are named.  Raises `FormatError` if `work` is exceeded.
    """
    work = work or WorkLimit()
    work.check()
    work.left -= _native.check_connected(tree, [*complete], objects, work.check, work=work.left)


def find_missing(
    commit: CommitObject, bases: Iterable[CommitObject], reader: PackReader, table: Filter
) -> MissingObjects:
    """Return a search for the objects of `commit` that are missing, as far as `table` includes it.

    All that it includes of `bases` is here.  The search reads its tree by `reader`.
    """
    _, tree = read_root(commit.tree, reader)
    base_trees = [read_root(base.tree, reader)[1] for base in bases]
    most = commit.info().totals.entries
    return MissingObjects(reader.packs, tree, base_trees, table, most)
