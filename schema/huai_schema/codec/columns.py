"""Batches of entries as the engine hands them over, and the values in them.

A batch is records of fixed length, the text that they have (paths, and a symlink's target or a
hardlink's leader), and the owners that they name by number.  The engine has checked it all.
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
"""How many entries are asked for at a time."""
GONE, BEFORE, MOVED = 1, 3, 4
"""What an entry is to a comparison, if not new.  How one that was `BEFORE` is now comes next."""

_RECORD = Struct("<BBHqqIIII32s")
"""Role, type, mode, size, mtime, where path and other text end, owner, group, digest."""
_FILE, _DIRECTORY = 1, 2
_NO_DIGEST = bytes(DIGEST_BYTES)


def entries(batch: Batch) -> Iterator[tuple[int, Entry, bytes]]:
    """Each entry, its role before it, and the text behind its path.

    A directory that moved stands where it was; the text is the path where it is now.
    """
    records, text, owners = batch
    begin = 0
    for role, kind, mode, size, mtime, path_end, end, owner, group, digest in _RECORD.iter_unpack(
        records
    ):
        path, other = RelPath(text[begin:path_end]), text[path_end:end]
        begin = end
        entry: Entry
        if kind == _FILE:
            link = RelPath(other) if other else None
            known = None if digest == _NO_DIGEST else digest
            entry = File(path, size, mtime, mode, owners[owner], owners[group], link, known)
        elif kind == _DIRECTORY:
            names = (owners[owner], owners[group]) if role != MOVED else ()
            entry = Directory(path, mtime, mode, *names)
        else:
            entry = Symlink(path, other, mtime, mode, owners[owner], owners[group])
        yield role, entry, other


def decoded(listing: _native.Entries, skip: int = 0) -> Iterator[Entry]:
    """The entries of a listing, but for the first `skip`, of which most are not even looked at."""
    while batch := listing.batch(BATCH):
        count = len(batch[0]) // _RECORD.size
        if skip < count:
            for _, entry, _ in islice(entries(batch), skip, None):
                yield entry
        skip = max(0, skip - count)
