"""Finding files by digest in a whole snapshot, with no index to keep.

Reads metadata only.  It costs what the snapshot holds, so it is worth it only for so many
bytes that a transfer of a part of them takes longer: `worth_looking`.  Memory grows with the
digests that are looked for.
"""

from collections.abc import Iterator

from huai_schema.codec.listing import Listing
from huai_schema.entries import File
from huai_schema.layout.snapshot import Snapshot, decode_listing
from huai_schema.limits import DIGEST_BYTES

BYTES_AN_ENTRY = 1000
"""Looking at an entry takes about as long as 50 to 200 bytes do at 50 MB/s; of what is new in
a mirror little is a copy of what stays, unless a release is copied, and that is much."""
FEW_ENTRIES = 10_000
"""Looking at so many takes some hundredths of a second, whatever comes of it."""


def worth_looking(size: int, entries: int) -> bool:
    """Whether `size` bytes to transfer pay for a look at so many entries."""
    return size > 0 and (entries <= FEW_ENTRIES or size > BYTES_AN_ENTRY * entries)


def files_with(snapshot: Snapshot, digests: set[bytes]) -> Iterator[File]:
    """The files of `snapshot` that have one of `digests`.

    The caller may take digests out of the set while it goes on; it ends with the last one.
    """
    for listing in snapshot.listings():
        if not digests:
            return
        if listing.digests and _holds_any(listing, digests):
            for entry in decode_listing(listing):
                if isinstance(entry, File) and entry.digest in digests:
                    yield entry


def _holds_any(listing: Listing, digests: set[bytes]) -> bool:
    column = listing.digests
    places = range(0, len(column), DIGEST_BYTES)
    return any(column[place : place + DIGEST_BYTES] in digests for place in places)
