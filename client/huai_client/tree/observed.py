"""What the engine says of paths that it looked at: records of fixed length.

Pure.  A record may have a text beside it: a symlink's target, or a path.
"""

from functools import cache
from struct import Struct
from typing import NamedTuple

from huai_client.tree.local_entry import LocalEntry
from huai_client.tree.owners import Names
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath

RECORD = Struct("<BBBxIIIIIiqQQQ")
"""The fields of a `Record`."""
MATCH, MISSING = 1, 2
"""Of the kinds of records."""

_ATTRIBUTES = ("type", "size", "mtime", "mode", "owner", "group", "target", "link")
_FILE, _DIRECTORY, _SYMLINK = 1, 2, 3


class Record(NamedTuple):
    """What is said of one path, or of several that are missing."""

    kind: int
    attributes: int
    """One bit for each of `_ATTRIBUTES` that differs."""
    type: int
    """Of what is there."""
    mode: int
    links: int
    uid: int
    gid: int
    text_end: int
    errno: int
    mtime: int
    size: int
    """Or how many entries are missing."""
    device: int
    inode: int


@cache
def attributes(bits: int) -> frozenset[str]:
    """The names of the attributes that differ."""
    return frozenset(name for bit, name in enumerate(_ATTRIBUTES) if bits >> bit & 1)


def seen(path: RelPath, record: Record, target: bytes, names: Names) -> LocalEntry:
    """What a record says is there."""
    _, _, _, _, links, uid, gid, _, _, _, _, device, inode = record
    return LocalEntry(path, _entry(path, record, target, names), device, inode, links, uid, gid)


def _entry(path: RelPath, record: Record, target: bytes, names: Names) -> Entry | None:
    _, _, kind, mode, _, uid, gid, _, _, mtime, size, _, _ = record
    owner, group = names.user(uid), names.group(gid)
    if kind == _FILE:
        return File(path, size, mtime, mode, owner, group)
    if kind == _DIRECTORY:
        return Directory(path, mtime, mode, owner, group)
    return Symlink(path, target, mtime, mode, owner, group) if kind == _SYMLINK else None
