"""Lines to entries (FORMAT.md, "Lines").

The engine decodes, strictly: a line decodes only if it is the one canonical spelling of its
entry.
"""

from collections.abc import Iterator

from huai_native import _native
from huai_schema.codec.columns import decoded
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath


def decode_leaves(
    directory: RelPath, leaves: bytes, digests: bytes = b""
) -> Iterator[File | Symlink]:
    """The entries of a listing's leaves, checked to be canonical, sorted and unique."""
    for entry in decoded(_native.Entries(directory, None, leaves, digests)):
        if not isinstance(entry, Directory):
            yield entry


def decode_directory(path: RelPath, attributes: bytes) -> Directory:
    """The directory whose attribute fields these are."""
    (found,) = decoded(_native.Entries(path, attributes, b"", b""))
    if not isinstance(found, Directory):
        raise TypeError(found)
    return found


def count_files(leaves: bytes) -> int:
    """How many lines are regular files: only a symlink's line holds a tab and `>`."""
    return leaves.count(b"\n") - leaves.count(b"\t>")
