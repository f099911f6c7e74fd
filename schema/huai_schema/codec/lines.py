"""Decodes lines into entries (FORMAT.md, "Lines").

The engine decodes strictly: a line decodes only if it is the canonical spelling of its entry.
"""

from collections.abc import Iterator

from huai_native import _native
from huai_schema.codec.columns import decode_entries
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath


def decode_leaves(
    directory: RelPath, leaves: bytes, digests: bytes = b""
) -> Iterator[File | Symlink]:
    """Yield the entries of a listing's leaves; their paths are below `directory`.

    Raises `FormatError` if the lines are not canonical, sorted and unique.
    """
    for entry in decode_entries(_native.Entries(directory, None, leaves, digests)):
        if not isinstance(entry, Directory):
            yield entry


def decode_directory(path: RelPath, attributes: bytes) -> Directory:
    """Parse attribute fields to the directory `path`; `FormatError` if they are malformed."""
    (entry,) = decode_entries(_native.Entries(path, attributes, b"", b""))
    if not isinstance(entry, Directory):
        raise TypeError(entry)
    return entry


def count_files(leaves: bytes) -> int:
    """Count the regular files of encoded lines; only a symlink's line has a tab and `>`."""
    return leaves.count(b"\n") - leaves.count(b"\t>")
