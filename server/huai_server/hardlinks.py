"""Finding hardlink groups in a scan.

Leaders are the first of their group in tree order, which is the order of the scan; each
later name gets a field that points to its leader.  An inode is forgotten when all its
names were seen, so memory holds only groups that are still open.
"""

from huai_schema.escaping import unescape
from huai_schema.lines import link_field
from huai_schema.paths import RelPath, join
from huai_server.scan.types import IDENTITY, ScannedDirectory


class _Group:
    __slots__ = ("leader", "unseen")

    def __init__(self, leader: RelPath, unseen: int) -> None:
        self.leader = leader
        self.unseen = unseen


class HardlinkGroups:
    """Feed it directories in tree order."""

    def __init__(self) -> None:
        """No group is open yet."""
        self._open: dict[tuple[int, int], _Group] = {}

    def resolve(self, scanned: ScannedDirectory) -> bytes:
        """The directory's leaves, with the hardlink fields set."""
        listing = scanned.listing
        if not scanned.hardlinks:
            return listing.leaves
        leaves = listing.leaves
        parts: list[bytes] = []
        position = 0
        for device, inode, _, _, _, links, offset in IDENTITY.iter_unpack(scanned.identities):
            if links < 2:
                continue
            name = unescape(leaves[offset : leaves.index(b"\t", offset)])
            path = join(listing.path, name)
            leader = self._leader((device, inode), path, links)
            if leader is not None:
                end = leaves.index(b"\n", offset)
                parts += leaves[position:end], link_field(path, leader)
                position = end
        return b"".join((*parts, leaves[position:]))

    def _leader(self, inode: tuple[int, int], path: RelPath, links: int) -> RelPath | None:
        group = self._open.get(inode)
        if group is None:
            self._open[inode] = _Group(path, links - 1)
            return None
        group.unseen -= 1
        if group.unseen <= 0:
            del self._open[inode]
        return group.leader
