"""EROFS images as attr trees: each update makes a new image, mounted next to the old one."""

import os
from pathlib import Path

from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback.erofs.image import write_image
from huai_server.fallback.erofs.mounting import mount, unmount
from huai_server.fallback.kind import AttrTreeError, AttrTreeKind
from huai_server.fallback.owners import OwnerIds


class ErofsKind(AttrTreeKind):
    """One image for each generation, in a folder on a disk; it ends with its mount."""

    ENTRY_BYTES = 150
    """Measured: 139 to 148 for an entry with a name of up to 40 bytes, on the disk, and in memory
    while it is served (`resident`)."""
    writable = False

    def check_room(self, totals: Totals) -> None:
        """Raise `AttrTreeError` if the disk has too little room."""
        needed = totals.entries * self.ENTRY_BYTES
        room = os.statvfs(self._folder)
        if room.f_bavail * room.f_frsize < needed:
            raise AttrTreeError(
                f"{self._folder}: an image of {totals.entries:,} entries takes about "
                f"{needed >> 20:,} MiB, and less is free",
                hint="make room there",
            )

    def make(self, generation: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
        """Write the image and mount it at `generation`; returns 0, as all owners can be set.

        Deletes images of killed builds before.  Raises `MountError`, `ImageLimitError`, and
        `StorageError` if the disk is full.
        """
        self._discard_orphans(generation.parent)
        image = self.image(generation)
        write_image(snapshot.listings, snapshot.tree, image, owners or OwnerIds.of_this_process())
        generation.mkdir()
        mount(image, generation)
        return 0

    def image(self, generation: Path) -> Path:
        """Return the path of the image that is mounted at `generation`."""
        return self._folder / f"attr-{generation.name}.erofs"

    def plan(self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None) -> None:
        """Return None, because an image is never changed in place."""

    def discard(self, generation: Path) -> None:
        """Unmount and delete the generation and its image; clients that have it open can finish.

        Raises `MountError` if it cannot be unmounted.
        """
        if generation.is_mount():
            unmount(generation)
        generation.rmdir()
        self.image(generation).unlink(missing_ok=True)

    def _discard_orphans(self, generations: Path) -> None:
        """Delete images without a generation, left by a restart or a killed build."""
        for image in self._folder.glob("attr-*.erofs*"):
            number = image.name.split(".")[0].removeprefix("attr-")
            if not (generations / number).exists():
                image.unlink()
