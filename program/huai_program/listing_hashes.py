"""A cache of the listing hashes of a repository's objects, so that a commit costs its change.

Rules: the file may be lost or truncated at any time; if its hashes lead to a hash other than the
signed one, everything is hashed again (`prove_listing`).  It begins with the number of records of
the first hash of a whole tree.  With somewhat more than twice as many it is rewritten, which costs
no more than the changes since then have cost.
"""

import os
from contextlib import suppress
from pathlib import Path

from huai_native._native import ListingHashes
from huai_program.durable import replace_file
from huai_schema.errors import FormatError
from huai_schema.git.objects import OID_BYTES, ObjectReader

LISTING_HASHES = "listing-hashes"
"""The name of the cache, and of the address for requests (FORMAT.md, "A part of a commit")."""
HASHES_TYPE = "application/x-huai-listing-hashes"
"""The content type of a response."""
_HEAD_BYTES = 8
RECORD_BYTES = 56
"""Id and listing hash of an object, and their CRC-32."""
_SOME = 4096
_PART = 65_536
"""The records that are read at a time."""


def listing_hash(path: Path, tree: bytes, objects: ObjectReader, stated: bytes = b"") -> bytes:
    """Return the listing hash of the git tree `tree` (id); add new hashes to the cache at `path`.

    A missing cache is made.  One with wrong hashes gives a wrong result.  `stated` has records of
    trees that `objects` lacks.  Raises `FormatError` for a damaged object.
    """
    data = _read(path)
    first = int.from_bytes(data[:_HEAD_BYTES], "big")
    records = data[_HEAD_BYTES:]
    if not records or len(records) > (2 * first + _SOME) * RECORD_BYTES:
        return _hash_whole(path, tree, objects, stated)
    hashes = ListingHashes(records, stated)
    listing = hashes.of_tree(tree, objects)
    if hashes.added:
        with path.open("r+b") as file:
            # After the last sound record: a torn one would hide all that follows.
            file.truncate(_HEAD_BYTES + hashes.sound)
            file.seek(0, os.SEEK_END)
            file.write(hashes.added)
    return listing


def prove_listing(
    path: Path, tree: bytes, objects: ObjectReader, signed: bytes, stated: bytes = b""
) -> None:
    """Raise `FormatError` unless `tree` has the listing hash `signed`; a wrong cache is removed.

    `stated`: see `listing_hash`.
    """
    if listing_hash(path, tree, objects, stated) == signed:
        return
    with suppress(FileNotFoundError):
        path.unlink()
    if listing_hash(path, tree, objects, stated) != signed:
        raise FormatError("the listing is not the signed one", "commit")


def stored_hashes(path: Path, trees: bytes) -> bytes:
    """Return the records of those of `trees`, ids one after the other, in the cache at `path`.

    Reads the file in parts.
    """
    parts = []
    with suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(_HEAD_BYTES)
        while part := file.read(_PART * RECORD_BYTES):
            parts.append(ListingHashes(part).records(trees))
    return b"".join(parts)


def by_tree(records: bytes) -> dict[bytes, bytes]:
    """Return records, one after the other, by the ids of their trees."""
    starts = range(0, len(records), RECORD_BYTES)
    return {records[at : at + OID_BYTES]: records[at : at + RECORD_BYTES] for at in starts}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _hash_whole(path: Path, tree: bytes, objects: ObjectReader, stated: bytes) -> bytes:
    """Hash the whole tree, replace the cache file, and return the listing hash."""
    hashes = ListingHashes(b"", stated)
    listing = hashes.of_tree(tree, objects)
    count = len(hashes.added) // RECORD_BYTES
    data = count.to_bytes(_HEAD_BYTES, "big") + hashes.added
    replace_file(path, data, path.with_name(f"{path.name}.new"))
    return listing
