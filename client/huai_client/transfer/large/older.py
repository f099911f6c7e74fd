"""The version of a large file that stands in the tree, and which blocks it holds.

A new file may have one as well, under a name that differs in its numbers.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from huai_client.diff.selection import Selection
from huai_client.metadata.block_indices import BlockIndices
from huai_client.staging.patches import state_of
from huai_client.tree import PathError, View
from huai_native._native import BlockIndex
from huai_schema.codec.escaping import escape, unescape
from huai_schema.entries import File
from huai_schema.paths import RelPath, basename, join, parent

_NUMBER = re.compile(rb"([0-9]+)")
_DIGITS_MOST = 40
"""Of one number: `int` refuses very long ones."""
_MOST = 3


def namesakes(name: bytes, leaves: bytes) -> list[bytes]:
    """At most three of the names in `leaves`, lines as in a manifest, the next older ones first.

    The names are those that have other numbers than `name`; without a number there is none.
    """
    parts = _NUMBER.split(escape(name))
    if len(parts) == 1:
        return []
    pattern = b"([0-9]{1,%d})" % _DIGITS_MOST
    same = pattern.join(re.escape(part) for part in parts[::2])
    here = _numbers(parts[1::2])
    lines = re.finditer(rb"(?m)^" + same + rb"\t", leaves)
    found = {_numbers(line.groups()): line[0].removesuffix(b"\t") for line in lines}
    older = sorted((key for key in found if key < here), reverse=True)
    newer = sorted(key for key in found if key > here)
    return [unescape(found[key]) for key in (older + newer)[:_MOST]]


def _numbers(texts: Iterable[bytes]) -> tuple[int, ...]:
    return tuple(int(text[:_DIGITS_MOST]) for text in texts)


class Older(NamedTuple):
    """An older version of a file, open."""

    path: RelPath
    handle: int
    found: os.stat_result
    """Before anything of it was read."""

    @property
    def is_unchanged(self) -> bool:
        """Whether it still is what it was."""
        return state_of(os.fstat(self.handle)) == state_of(self.found)

    def read(self, block: int, threads: int) -> BlockIndex | None:
        """What it holds, in blocks of `block` bytes; None: it is too small, or cannot be read."""
        try:
            return BlockIndex.of_file(self.handle, block, threads)
        except OSError:
            return None


@contextmanager
def opened(view: View, path: RelPath) -> Iterator[Older | None]:
    """What stands at `path`; None: no regular file that can be read."""
    try:
        handle = view.open_file(path)
    except PathError:
        yield None
        return
    try:
        yield Older(path, handle, os.fstat(handle))
    finally:
        os.close(handle)


class Former(NamedTuple):
    """What the last sync left in the tree."""

    selection: Selection
    indices: BlockIndices
    until: int
    """Nanoseconds since the epoch: a file that was changed later is no longer that."""

    def namesakes(self, path: RelPath) -> list[RelPath]:
        """Where other issues of the file at `path` may stand."""
        listing = self.selection.snapshot.listing(parent(path))
        if listing is None:
            return []
        names = namesakes(basename(path), listing.leaves)
        return [join(parent(path), name) for name in names]

    def index_of(self, older: Older) -> BlockIndex | None:
        """What `older` holds, if that is known without reading it."""
        known, found = self.selection.entry(older.path), older.found
        if not isinstance(known, File) or known.digest is None:
            return None
        is_ours = (found.st_size, found.st_mtime_ns) == (known.size, known.mtime)
        if not is_ours or found.st_ctime_ns > self.until:
            return None
        return self.indices.find(known.size, known.digest)
