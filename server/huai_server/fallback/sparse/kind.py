"""Attr trees of sparse files, as a rule on a file system in memory.

An entry takes the memory of an inode and a name in tmpfs; neither can be paged out.
"""

import os
from pathlib import Path

from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback import memory
from huai_server.fallback.kind import AttrTreeError, AttrTreeKind, Update
from huai_server.fallback.owners import OwnerIds
from huai_server.fallback.sparse.build import build_tree
from huai_server.fallback.sparse.deleting import delete_tree
from huai_server.fallback.sparse.update import building, plan_update

_WORK_BYTES = 32 << 20
"""What a build takes beside that."""


class SparseKind(AttrTreeKind):
    """Sparse files, changed in place."""

    ENTRY_BYTES = 1100
    """Measured: 1040 to 1100 an entry, names of 40 bytes."""
    writable = True

    def check_room(self, totals: Totals) -> None:
        """Ask for inodes, and for memory on a file system that is in memory."""
        folder, needed = self._folder, totals.entries * self.ENTRY_BYTES
        room = os.statvfs(folder)
        if room.f_files and room.f_favail < totals.entries:
            raise AttrTreeError(
                f"{folder}: {totals.entries:,} entries need as many inodes, "
                f"and {room.f_favail:,} are free",
                hint="mount it with more (nr_inodes=0 for a tmpfs), or set fallback.folder to "
                "another folder",
            )
        if _is_in_memory(folder) and (free := memory.available_bytes()) < needed + _WORK_BYTES:
            raise AttrTreeError(
                f"{totals.entries:,} entries would take about {needed >> 20:,} MiB of memory "
                f"({self.ENTRY_BYTES} bytes each), and {free >> 20:,} MiB are available here",
                hint='fallback.kind = "erofs" takes a fifth of it; or set fallback.folder to a '
                "folder on an SSD",
            )

    def make(self, generation: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
        """Fill a folder."""
        delete_tree(building(generation))
        return build_tree(generation, snapshot, owners)

    def plan(
        self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None
    ) -> Update:
        """Change what differs."""
        return plan_update(generation, old, new, owners)

    def discard(self, generation: Path) -> None:
        """Delete the folder."""
        delete_tree(generation)


def _is_in_memory(folder: Path) -> bool:
    """Whether the file system is tmpfs, by the mount table's longest match."""
    here = os.path.realpath(folder)
    best, kind = "", ""
    for line in (
        Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    ):
        _, point, found, *_ = line.split(" ")
        inside = here == point or here.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, found
    return kind in ("tmpfs", "ramfs")
