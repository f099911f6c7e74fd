"""Batches of entries as the engine returns them, decoded into values.

A batch has records of fixed length, their text (paths, and a symlink's target or a hardlink's
leader), and the owners to which records refer by number.  The engine has checked all of it.
"""

from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import TypeAlias

from huai_native import _native
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath

Batch: TypeAlias = tuple[bytes, bytes, tuple[bytes, ...]]
BATCH = 1000
"""The number of entries to request at a time."""
GONE, BEFORE, MOVED = 1, 3, 4
"""The roles of an entry in a comparison, except new.  After `BEFORE` comes its present state."""

_RECORD = Struct("<BBHqqIIII32s")
"""Role, type, mode, size, mtime, ends of the path and of the other text, owner, group, digest."""
_FILE, _DIRECTORY = 1, 2
_NO_DIGEST = bytes(DIGEST_BYTES)


def decode_batch(batch: Batch) -> Iterator[tuple[int, Entry, bytes]]:
    """Yield role, entry and other text of each record: a symlink's target, a hardlink's leader.

    Of a moved directory the entry has the former path, and the other text is the present one.
    """
    records, text, owners = batch
    begin = 0
    for (
        role,
        kind,
        mode,
        size,
        mtime,
        path_end,
        end,
        owner,
        group,
        raw_digest,
    ) in _RECORD.iter_unpack(records):
        path, other = RelPath(text[begin:path_end]), text[path_end:end]
        begin = end
        entry: Entry
        if kind == _FILE:
            link = RelPath(other) if other else None
            digest = None if raw_digest == _NO_DIGEST else raw_digest
            entry = File(path, size, mtime, mode, owners[owner], owners[group], link, digest)
        elif kind == _DIRECTORY:
            names = (owners[owner], owners[group]) if role != MOVED else ()
            entry = Directory(path, mtime, mode, *names)
        else:
            entry = Symlink(path, other, mtime, mode, owners[owner], owners[group])
        yield role, entry, other


def batch_entries(batch: Batch | None) -> list[Entry]:
    """Return the entries of a batch; none for None."""
    return [entry for _, entry, _ in decode_batch(batch)] if batch else []


def decode_entries(listing: _native.Entries, skip: int = 0) -> Iterator[Entry]:
    """Yield the entries of a listing, without the first `skip`, most of which are not decoded.

    Raises `FormatError` if a line is malformed.
    """
    while batch := listing.batch(BATCH):
        count = len(batch[0]) // _RECORD.size
        if skip < count:
            for _, entry, _ in islice(decode_batch(batch), skip, None):
                yield entry
        skip = max(0, skip - count)
