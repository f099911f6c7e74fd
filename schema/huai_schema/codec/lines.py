"""Lines to entries, and what of lines is written here (FORMAT.md, "Lines").

The engine decodes, strictly: a line decodes only if it is the one canonical spelling of its
entry.
"""

from collections.abc import Iterator

from huai_native import _native
from huai_schema.codec.columns import decoded
from huai_schema.codec.escaping import escape
from huai_schema.entries import DIRECTORY_MODE, ROOT_OWNER, Directory, File, Symlink
from huai_schema.paths import RelPath, parent

_NANOSECONDS = 1_000_000_000


def encode_directory(entry: Directory) -> bytes:
    """The attribute fields of a directory, without its name."""
    fields = _encode_fields(entry.mode, DIRECTORY_MODE, entry.owner, entry.group)
    return encode_mtime(entry.mtime) + fields


def link_field(path: bytes, leader: bytes) -> bytes:
    """The field, its tab included, that makes `path` a hardlink to `leader`.

    The leader is named relative to the directory of `path`, so that a directory which
    moves with the whole group in it keeps its manifests.
    """
    return b"\th" + escape(_relative(leader, parent(path)))


def encode_mtime(nanoseconds: int) -> bytes:
    """Seconds, floored, and the rest as a decimal fraction without trailing zeros."""
    seconds, rest = divmod(nanoseconds, _NANOSECONDS)
    if not rest:
        return b"%d" % seconds
    return b"%d.%s" % (seconds, (b"%09d" % rest).rstrip(b"0"))


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


def _encode_fields(mode: int, default: int, owner: bytes, group: bytes) -> bytes:
    fields = b"" if mode == default else b"\tm%o" % mode
    if owner != ROOT_OWNER:
        fields += b"\tu" + escape(owner)
    if group != ROOT_OWNER:
        fields += b"\tg" + escape(group)
    return fields


def _relative(path: bytes, start: bytes) -> bytes:
    """`path` as seen from the directory `start`."""
    here = start.split(b"/") if start else []
    there = path.split(b"/")
    common = 0
    while common < min(len(here), len(there) - 1) and here[common] == there[common]:
        common += 1
    return b"/".join([b".."] * (len(here) - common) + there[common:])
