"""Comparing one directory with itself: what differs between two listings.

Looks only at what lies between the lines that both begin and end with.
"""

from collections.abc import Iterator

from huai_schema.codec.lines import decode_directory, decode_leaves
from huai_schema.codec.listing import Listing
from huai_schema.diff.changes import Change, differing
from huai_schema.layout.common_parts import Text, without_common_lines
from huai_schema.layout.snapshot import decode_listing


def compare_listings(old: Listing | None, new: Listing | None) -> Iterator[Change]:
    """One directory against itself, or against nothing."""
    if old is None or new is None:
        for listing in (old, new):
            if listing is not None:
                yield from all_of(listing, gone=new is None)
        return
    if old.attributes != new.attributes:
        was = decode_directory(old.path, old.attributes)
        now = decode_directory(new.path, new.attributes)
        if differing(was, now):
            yield Change(old.path, was, now)
    if old.leaves == new.leaves and old.digests == new.digests:
        return
    before, after = without_common_lines(
        Text(old.leaves, old.digests), Text(new.leaves, new.digests)
    )
    gone = {entry.path: entry for entry in decode_leaves(old.path, *before)}
    for entry in decode_leaves(new.path, *after):
        past = gone.pop(entry.path, None)
        if past is None or differing(past, entry):
            yield Change(entry.path, past, entry)
    for entry in gone.values():
        yield Change(entry.path, entry, None)


def all_of(listing: Listing, *, gone: bool) -> Iterator[Change]:
    """Every entry of one directory, as gone or as new."""
    for entry in decode_listing(listing):
        yield Change(entry.path, entry, None) if gone else Change(entry.path, None, entry)
