"""Files of a commit that a mirror of it has to have, whichever commit it goes on to meanwhile.

Each file of the commit has the same chance.  All manifests are read for that, but few lines are
taken apart.
"""

import random
from collections.abc import Callable, Iterator

from huai_schema.entries import File
from huai_schema.layout.snapshot import Snapshot, leaves_from
from huai_schema.paths import RelPath

_SPARE = 8
"""So many times more are looked at than are wanted: links, files that have changed, large ones."""


def sample(
    attested: Snapshot,
    newest: Snapshot,
    leaves: int,
    most: int,
    is_volatile: Callable[[bytes], bool],
) -> list[File]:
    """At most `most` regular files of `attested` that are the same in `newest`, in random order.

    `leaves`: how many files and symlinks `attested` has.
    """
    places = sorted(random.sample(range(leaves), min(leaves, most * _SPARE)))
    found = [
        each
        for each in _leaves_at(attested, places)
        if each.digest is not None
        and not is_volatile(each.path)
        and _same(newest, each.path, each.digest)
    ]
    random.shuffle(found)
    return found[:most]


def _leaves_at(snapshot: Snapshot, places: list[int]) -> Iterator[File]:
    """The regular files among the leaves with these numbers, which grow."""
    wanted, begin = iter(places), 0
    place = next(wanted, None)
    for listing in snapshot.listings():
        if place is None:
            return
        end = begin + listing.leaves.count(b"\n")
        while place is not None and place < end:
            leaf = next(leaves_from(listing, place - begin), None)
            if isinstance(leaf, File):
                yield leaf
            place = next(wanted, None)
        begin = end


def _same(newest: Snapshot, path: RelPath, digest: bytes) -> bool:
    there = newest.leaf(path)
    return isinstance(there, File) and there.digest == digest
