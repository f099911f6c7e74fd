"""The version of a large file in the tree, and its blocks.

A new file may have one as well, under a name that differs in its numbers.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from huai_client.diff.selection import Selection
from huai_client.metadata.block_indices import BlockIndexFetch
from huai_client.staging.patches import file_state
from huai_client.tree import PathError, View
from huai_client.tree.handles import closing
from huai_native._native import BlockIndex
from huai_schema.codec.escaping import escape, unescape
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename, join, parent

_NUMBER = re.compile(rb"([0-9]+)")
_DIGITS_MOST = 40
"""Digits of one number: `int` refuses very long ones."""
_MOST = 3


def namesakes(name: bytes, leaves: bytes) -> list[bytes]:
    """Return at most three names in `leaves`, the lines of a manifest, the next older ones first.

    They are the names with other numbers than `name`; a name without a number has none.
    """
    parts = _NUMBER.split(escape(name))
    if len(parts) == 1:
        return []
    pattern = b"([0-9]{1,%d})" % _DIGITS_MOST
    same = pattern.join(re.escape(part) for part in parts[::2])
    own = _numbers(parts[1::2])
    lines = re.finditer(rb"(?m)^" + same + rb"\t", leaves)
    status = {_numbers(line.groups()): line[0].removesuffix(b"\t") for line in lines}
    older = sorted((key for key in status if key < own), reverse=True)
    newer = sorted(key for key in status if key > own)
    return [unescape(status[key]) for key in (older + newer)[:_MOST]]


def _numbers(texts: Iterable[bytes]) -> tuple[int, ...]:
    """Parse digits, cut after `_DIGITS_MOST`."""
    return tuple(int(text[:_DIGITS_MOST]) for text in texts)


class Older(NamedTuple):
    """An older version of a file, open; `opened` closes it."""

    path: RelPath
    handle: int
    status: os.stat_result
    """Its status before it was read."""

    @property
    def is_unchanged(self) -> bool:
        """True if the file has not changed since `status`."""
        return file_state(os.fstat(self.handle)) == file_state(self.status)

    def read(self, block: int, threads: int) -> BlockIndex | None:
        """Read the file; return its index for blocks of `block` bytes.

        None if the file is too small or unreadable.
        """
        try:
            return BlockIndex.of_file(self.handle, block, threads)
        except OSError:
            return None


@contextmanager
def opened(view: View, path: RelPath) -> Iterator[Older | None]:
    """Open the file at `path` within the block; None if it is not a readable regular file."""
    try:
        handle = view.open_file(path)
    except PathError:
        yield None
        return
    with closing(handle):
        yield Older(path, handle, os.fstat(handle))


class Former(NamedTuple):
    """The tree as the last sync left it."""

    selection: Selection
    indices: BlockIndexFetch
    until: int
    """Nanoseconds since the epoch: a file that was changed later is not trusted."""

    def namesakes(self, path: RelPath) -> list[RelPath]:
        """Return at most three paths that differ from `path` in the numbers of the name only."""
        listing = self.selection.snapshot.listing(parent(path))
        if listing is None:
            return []
        names = namesakes(basename(path), listing.leaves)
        return [join(parent(path), name) for name in names]

    def index_of(self, older: Older) -> BlockIndex | None:
        """Return the index of `older`, if it is known without reading it; None if it changed."""
        entry, status = self.selection.entry(older.path), older.status
        if not isinstance(entry, File) or entry.digest is None:
            return None
        is_ours = (status.st_size, status.st_mtime_ns) == (entry.size, entry.mtime)
        if not is_ours or status.st_ctime_ns > self.until:
            return None
        return self.indices.find(entry.size, entry.digest)
