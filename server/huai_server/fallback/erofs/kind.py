"""EROFS images as attr trees: each update makes a new image, mounted next to the old one."""

import os
from pathlib import Path

from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback.erofs.image import image_damage, write_image
from huai_server.fallback.erofs.mounting import check_mountable, mount, unmount
from huai_server.fallback.kind import AttrTreeError, AttrTreeKind
from huai_server.fallback.owners import OwnerIds


class ErofsKind(AttrTreeKind):
    """One image for each generation, in a folder on a disk."""

    ENTRY_BYTES = 150
    """Measured: 139 to 148 for an entry with a name of up to 40 bytes, on the disk, and in memory
    while it is served (`resident`)."""
    writable = False

    def check_room(self, totals: Totals) -> None:
        """Check the room on the disk; raises `MountError` if images cannot be mounted."""
        check_mountable(self._folder)
        needed = totals.entries * self.ENTRY_BYTES
        room = os.statvfs(self._folder)
        if room.f_bavail * room.f_frsize < needed:
            raise AttrTreeError(
                f"{self._folder}: an image of {totals.entries:,} entries takes about "
                f"{needed >> 20:,} MiB, and less is free",
                hint="make room there",
            )

    def make(self, generation: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
        """Build the image and mount it; reuses an existing image of the same tree."""
        image = self._folder / f"attr-{generation.name}-{snapshot.tree.hex()}.erofs"
        owners = owners or OwnerIds.of_this_process()
        self._discard_orphans(generation.parent, snapshot.tree)
        if not self._take_over(image, snapshot.tree, owners):
            write_image(snapshot.listings, snapshot.tree, image, owners)
        generation.mkdir()
        mount(image, generation)
        return 0

    def image(self, generation: Path) -> Path | None:
        """Return the image that is mounted at `generation`; None if it is missing."""
        return next(self._folder.glob(f"attr-{generation.name}-*.erofs"), None)

    def plan(self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None) -> None:
        """Return None, because an image is never changed in place."""

    def discard(self, generation: Path) -> None:
        """Unmount and delete the image; clients that have it open can finish."""
        unmount(generation)
        generation.rmdir()
        for image in self._folder.glob(f"attr-{generation.name}-*.erofs"):
            image.unlink()

    def _take_over(self, image: Path, tree: bytes, owners: OwnerIds) -> bool:
        """Rename an undamaged image of the same tree to `image`, and delete damaged ones.

        So a machine that restarts need not build the images again.  Returns True if there was one.
        """
        for other in self._folder.glob(f"attr-*-{tree.hex()}.erofs"):
            if image_damage(other, tree, owners) is None:
                other.rename(image)
                return True
            other.unlink()
        return False

    def _discard_orphans(self, generations: Path, tree: bytes) -> None:
        """Delete images without a generation, left by a restart or a killed build."""
        for partial in self._folder.glob("attr-*.erofs.partial"):
            partial.unlink()
        for image in self._folder.glob("attr-*.erofs"):
            _, number, of_tree = image.stem.split("-")
            if of_tree != tree.hex() and not (generations / number).exists():
                image.unlink()
