"""The listing hashes of a repository's objects, kept in a file, so that a commit costs its change.

Rules: the file may be lost or cut at any time, and whatever it says is hashed again where it
leads to another hash than was signed (`prove_listing`).  It begins with the number of records that
the first hash of a whole tree made.  Once it has twice as many and some more, it is begun anew:
that costs no more than the changes since then have cost.
"""

import os
from contextlib import suppress
from pathlib import Path

from huai_native._native import ListingHashes
from huai_program.durable import replace_file
from huai_schema.errors import FormatError
from huai_schema.git.objects import ObjectReader

_HEAD_BYTES = 8
_RECORD_BYTES = 56
_SOME = 4096


def listing_hash(path: Path, tree: bytes, objects: ObjectReader) -> bytes:
    """The listing hash of a commit's tree; `path` is the file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    first = int.from_bytes(data[:_HEAD_BYTES], "big")
    records = data[_HEAD_BYTES:]
    if not records or len(records) > (2 * first + _SOME) * _RECORD_BYTES:
        return _begin(path, tree, objects)
    hashes = ListingHashes(records)
    found = hashes.of_tree(tree, objects)
    if hashes.added:
        with path.open("r+b") as file:
            # Behind the last sound record: what a crash left there would hide all that follows.
            file.truncate(_HEAD_BYTES + hashes.sound)
            file.seek(0, os.SEEK_END)
            file.write(hashes.added)
    return found


def prove_listing(path: Path, tree: bytes, objects: ObjectReader, signed: bytes) -> None:
    """`FormatError` if a commit's tree has another listing hash than `signed`."""
    if listing_hash(path, tree, objects) == signed:
        return
    with suppress(FileNotFoundError):
        path.unlink()
    if listing_hash(path, tree, objects) != signed:
        raise FormatError("another listing than the one that was signed", "commit")


def _begin(path: Path, tree: bytes, objects: ObjectReader) -> bytes:
    hashes = ListingHashes(b"")
    found = hashes.of_tree(tree, objects)
    count = len(hashes.added) // _RECORD_BYTES
    data = count.to_bytes(_HEAD_BYTES, "big") + hashes.added
    replace_file(path, data, path.with_name(f"{path.name}.new"))
    return found
