"""Attr trees of sparse files, as a rule on a file system in memory.

An entry takes the memory of an inode and a name in tmpfs; neither can be paged out.
"""

import os
from pathlib import Path

from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback import memory
from huai_server.fallback.attr.build import build_tree
from huai_server.fallback.attr.deleting import delete_tree
from huai_server.fallback.attr.update import SparseUpdate, building
from huai_server.fallback.kind import AttrTreeError
from huai_server.fallback.owners import OwnerIds

ENTRY_BYTES = 1100
"""Measured: 1040 to 1100 an entry, names of 40 bytes."""
_WORK_BYTES = 32 << 20
"""What a build takes beside that."""


class SparseKind:
    """Sparse files, changed in place (`kind.AttrTreeKind`)."""

    writable = True

    def memory(self, totals: Totals) -> int:
        """Bytes of an attr tree of so many entries, about."""
        return totals.entries * ENTRY_BYTES

    def check_room(self, folder: Path, totals: Totals) -> None:
        """`AttrTreeError` unless one of this size can be made below `folder` here and now."""
        needed = self.memory(totals)
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
                f"({ENTRY_BYTES} bytes each), and {free >> 20:,} MiB are available here",
                hint='fallback.kind = "erofs" takes a fifth of it; or set fallback.folder to a '
                "folder on an SSD",
            )

    def make(self, generation: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
        """Make a whole one; returns how many entries could not be given their owner."""
        delete_tree(building(generation))
        return build_tree(generation, snapshot, owners)

    def plan(
        self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None
    ) -> SparseUpdate:
        """How to take the one at `generation` from `old` to `new`."""
        return SparseUpdate(generation, old, new, owners)

    def discard(self, generation: Path) -> None:
        """Delete it."""
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
