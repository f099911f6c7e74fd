"""Finding hardlink groups in a scan.

A leader is the first name of its group in tree order, which is the order of the scan.  Each later
name gets a field that points to the leader, unless the file was changed between the two readings.
An inode is forgotten when all its names were seen, so memory holds only groups with names to come.
"""

from collections.abc import Collection
from typing import NamedTuple

from huai_schema.codec.escaping import unescape
from huai_schema.codec.lines import link_field
from huai_schema.limits import DIGEST_BYTES
from huai_schema.paths import RelPath, join
from huai_server.scan.types import IDENTITY, ScannedDirectory

_ABSENT = bytes(DIGEST_BYTES)


class FileState(NamedTuple):
    """All that the names of one file have in common."""

    fields: bytes
    """Its line without the name and without a hardlink field."""
    digest: bytes
    """Empty, or all zeros: the digest is not known."""

    def equals(self, other: "FileState") -> bool:
        """Whether both are equal; a digest that only one side has does not count."""
        unknown = b"", _ABSENT
        return self.fields == other.fields and (
            self.digest == other.digest or self.digest in unknown or other.digest in unknown
        )


class _Group:
    __slots__ = ("leader", "state", "unseen")

    def __init__(self, leader: RelPath, state: FileState, unseen: int) -> None:
        self.leader = leader
        self.state = state
        self.unseen = unseen


class HardlinkGroups:
    """Finds the groups of one scan; takes its directories in tree order."""

    def __init__(self) -> None:
        """No group is open yet."""
        self._open: dict[tuple[int, int], _Group] = {}
        self._by_leader: dict[RelPath, _Group] = {}

    def resolve(self, scanned: ScannedDirectory, unsure: Collection[bytes] = ()) -> bytes:
        """The leaves of a directory with their hardlink fields; names in `unsure` get none."""
        leaves = scanned.listing.leaves
        if not scanned.hardlinks:
            return leaves
        parts: list[bytes] = []
        position = 0
        records = IDENTITY.iter_unpack(scanned.identities)
        for number, (device, inode, _, _, _, links, offset, *_) in enumerate(records):
            tab = leaves.index(b"\t", offset)
            if links < 2 or leaves[offset:tab] in unsure:
                continue
            end = leaves.index(b"\n", tab)
            place = DIGEST_BYTES * number
            digest = scanned.listing.digests[place : place + DIGEST_BYTES]
            path = join(scanned.listing.path, unescape(leaves[offset:tab]))
            state = FileState(leaves[tab:end], digest)
            leader = self._leader((device, inode), path, state, links)
            if leader is not None:
                parts += leaves[position:end], link_field(path, leader)
                position = end
        return b"".join((*parts, leaves[position:]))

    def leads(self, path: RelPath, state: FileState) -> bool:
        """Whether `path` leads an open group whose names are all in `state`."""
        group = self._by_leader.get(path)
        return group is not None and group.state.equals(state)

    def _leader(
        self, inode: tuple[int, int], path: RelPath, state: FileState, links: int
    ) -> RelPath | None:
        group = self._open.get(inode)
        if group is None:
            group = _Group(path, state, links - 1)
            self._open[inode] = self._by_leader[path] = group
            return None
        group.unseen -= 1
        if group.unseen <= 0:
            del self._open[inode], self._by_leader[group.leader]
        return group.leader if group.state.equals(state) else None
