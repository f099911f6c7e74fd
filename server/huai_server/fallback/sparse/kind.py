"""Attr trees of sparse files, usually on a file system in memory.

An entry takes the memory of an inode and a name in tmpfs; neither can be paged out.  A build
streams, so that its memory does not grow with the tree.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from huai_schema.codec.commits import Totals
from huai_schema.codec.lines import decode_directory
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, parent
from huai_server.fallback import memory
from huai_server.fallback.kind import AttrTreeError, AttrTreeKind, Update
from huai_server.fallback.owners import OwnerIds
from huai_server.fallback.sparse.maker import Maker, delete_tree
from huai_server.fallback.sparse.update import building, plan_update

if TYPE_CHECKING:
    from huai_schema.entries import Directory

_WORK_BYTES = 32 << 20
"""The memory that a build takes in addition."""


class SparseKind(AttrTreeKind):
    """Sparse files, changed in place."""

    ENTRY_BYTES = 1100
    """Measured: 1040 to 1100 for an entry with a name of 40 bytes."""
    writable = True

    def check_room(self, totals: Totals) -> None:
        """Raise `AttrTreeError` for too few free inodes, or too little memory on a tmpfs."""
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
        """Create the folder with its files; return the number whose owner could not be set."""
        delete_tree(building(generation))
        generation.mkdir(mode=0o700)
        with Maker(generation, owners) as maker:
            _fill(maker, snapshot)
            return maker.unowned

    def plan(
        self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None
    ) -> Update:
        """Plan the changes of the entries that differ."""
        return plan_update(generation, old, new, owners)

    def discard(self, generation: Path) -> None:
        """Delete the folder `generation`."""
        delete_tree(generation)


def _fill(maker: Maker, snapshot: Snapshot) -> None:
    """Create all entries of a snapshot; the attributes of a directory are set after its content."""
    unfinished: list[Directory] = []
    for listing in snapshot.listings():
        directory = decode_directory(listing.path, listing.attributes)
        # Attributes come last: a mode may deny the owner, and each new name changes the time.
        while unfinished and unfinished[-1].path != parent(directory.path):
            maker.set_attributes(unfinished.pop())
        unfinished.append(directory)
        if directory.path != ROOT:
            maker.make_directory(directory)
        if listing.leaves:
            maker.make_leaves(listing)
    for directory in reversed(unfinished):
        maker.set_attributes(directory)


def _is_in_memory(folder: Path) -> bool:
    """True if the file system is a tmpfs, by the table of mounts (proc_pid_mountinfo(5))."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    for line in table.splitlines():
        mount, _, source = line.partition(" - ")
        if mount.split()[2] == number:
            return source.split()[0] in ("tmpfs", "ramfs")
    return False
