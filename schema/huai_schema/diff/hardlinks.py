"""The one rule of a snapshot that no single line can show: hardlink groups are whole.

Goes through the tree once, and a second time through the directories that leaders are in;
memory grows with the number of groups.
"""

from huai_schema.codec.lines import decode_leaves
from huai_schema.diff.changes import differing
from huai_schema.entries import File
from huai_schema.errors import FormatError
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath, parent, show


def check_hardlinks(snapshot: Snapshot) -> None:
    """`FormatError` unless each leader is a regular file, no link itself, and equals its group."""
    members = _first_members(snapshot)
    directories = {parent(leader) for leader in members}
    for listing in snapshot.listings() if members else ():
        if listing.path not in directories:
            continue
        for entry in decode_leaves(listing.path, listing.leaves, listing.digests):
            member = members.pop(entry.path, None)
            if member is not None:
                _check_equal(member, entry if isinstance(entry, File) else None)
    for member in members.values():
        _check_equal(member, None)


def _first_members(snapshot: Snapshot) -> dict[RelPath, File]:
    """One member of each group by its leader; all others of the group equal it."""
    members: dict[RelPath, File] = {}
    for listing in snapshot.listings():
        if b"\th" not in listing.leaves:
            continue
        for entry in decode_leaves(listing.path, listing.leaves, listing.digests):
            if isinstance(entry, File) and entry.link is not None:
                first = members.setdefault(entry.link, entry)
                _check_equal(entry, first._replace(link=None))
    return members


def _check_equal(member: File, leader: File | None) -> None:
    if leader is None or leader.link is not None:
        reason = "a hardlink to what is not the first file of a group"
    elif differing(member._replace(link=None), leader):
        reason = "a hardlink differs from its group"
    else:
        return
    raise FormatError(f"{reason}: {show(member.link or b'')}", show(member.path))
