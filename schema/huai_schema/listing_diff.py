"""Comparing one directory with itself: what differs between two listings.

Looks only at what lies between the lines that both begin and end with.
"""

from collections.abc import Callable, Iterator

from huai_schema.changes import Change, differing
from huai_schema.limits import DIGEST_BYTES
from huai_schema.lines import count_files, decode_directory, decode_leaves
from huai_schema.listing import Listing
from huai_schema.snapshot import decode_listing


def compare_listings(old: Listing | None, new: Listing | None) -> Iterator[Change]:
    """One directory against itself, or against nothing."""
    if old is None or new is None:
        for listing in (old, new):
            if listing is not None:
                yield from all_of(listing, gone=new is None)
        return
    if old.attributes != new.attributes:
        before = decode_directory(old.path, old.attributes)
        after = decode_directory(new.path, new.attributes)
        if differing(before, after):
            yield Change(old.path, before, after)
    if old.leaves == new.leaves and old.digests == new.digests:
        return
    old, new = _trimmed(old, new)
    gone = {entry.path: entry for entry in decode_leaves(old.path, old.leaves, old.digests)}
    for entry in decode_leaves(new.path, new.leaves, new.digests):
        was = gone.pop(entry.path, None)
        if was is None or differing(was, entry):
            yield Change(entry.path, was, entry)
    for entry in gone.values():
        yield Change(entry.path, entry, None)


def all_of(listing: Listing, *, gone: bool) -> Iterator[Change]:
    """Every entry of one directory, as gone or as new."""
    for entry in decode_listing(listing):
        yield Change(entry.path, entry, None) if gone else Change(entry.path, None, entry)


def _trimmed(old: Listing, new: Listing) -> tuple[Listing, Listing]:
    """Both without the lines they begin and end with in common, which need no decoding."""
    if bool(old.digests) != bool(new.digests):
        return old, new
    shorter = min(len(old.leaves), len(new.leaves))
    head = _longest(shorter, lambda n: old.leaves[:n] == new.leaves[:n])
    head = old.leaves.rfind(b"\n", 0, head) + 1
    tail = _longest(
        shorter - head,
        lambda n: old.leaves[len(old.leaves) - n :] == new.leaves[len(new.leaves) - n :],
    )
    tail -= old.leaves.find(b"\n", len(old.leaves) - tail - 1) - (len(old.leaves) - tail - 1)
    first = DIGEST_BYTES * count_files(old.leaves[:head])
    last = DIGEST_BYTES * count_files(old.leaves[len(old.leaves) - tail :])
    if old.digests[:first] != new.digests[:first]:
        head = first = 0
    if old.digests[len(old.digests) - last :] != new.digests[len(new.digests) - last :]:
        tail = last = 0
    return _slice(old, head, tail, first, last), _slice(new, head, tail, first, last)


def _slice(listing: Listing, head: int, tail: int, first: int, last: int) -> Listing:
    leaves, digests = listing.leaves, listing.digests
    return listing._replace(
        leaves=leaves[head : len(leaves) - tail], digests=digests[first : len(digests) - last]
    )


def _longest(most: int, equal: Callable[[int], bool]) -> int:
    """The largest n up to `most` for which `equal` holds; it holds for all below it."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if equal(middle):
            low = middle
        else:
            high = middle - 1
    return low
