"""EROFS images as attr trees: each update makes a new image, mounted beside the old one."""

import os
from pathlib import Path

from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback.erofs.image import damage, write_image
from huai_server.fallback.erofs.mounting import check_mountable, mount, unmount
from huai_server.fallback.kind import AttrTreeError, AttrTreeKind
from huai_server.fallback.owners import OwnerIds


class ErofsKind(AttrTreeKind):
    """One image a generation, in a folder on a disk."""

    ENTRY_BYTES = 150
    """Measured: 139 to 148 an entry with names of up to 40 bytes.  On the disk, and in memory while
    it is served (`resident`)."""
    writable = False

    def check_room(self, totals: Totals) -> None:
        """Raise `MountError` as well, if no image can be mounted."""
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
        """Build the image and mount it; uses an image of the same tree that is already there."""
        image = self._folder / f"attr-{generation.name}-{snapshot.tree.hex()}.erofs"
        owners = owners or OwnerIds.of_this_process()
        self._discard_forgotten(generation.parent, snapshot.tree)
        if not self._take_over(image, snapshot.tree, owners):
            write_image(snapshot.listings, snapshot.tree, image, owners)
        generation.mkdir()
        mount(image, generation)
        return 0

    def image(self, generation: Path) -> Path | None:
        """The image that is mounted at `generation`; None: there is none."""
        return next(self._folder.glob(f"attr-{generation.name}-*.erofs"), None)

    def plan(self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None) -> None:
        """None: an image is never changed in place."""

    def discard(self, generation: Path) -> None:
        """Unmount it; clients that have it open finish on it."""
        unmount(generation)
        generation.rmdir()
        for image in self._folder.glob(f"attr-{generation.name}-*.erofs"):
            image.unlink()

    def _take_over(self, image: Path, tree: bytes, owners: OwnerIds) -> bool:
        """Use the image of another generation as `image`, if it is undamaged and of the same tree.

        So a machine does not build again when it starts: the images are still on the disk.
        """
        for other in self._folder.glob(f"attr-*-{tree.hex()}.erofs"):
            if damage(other, tree, owners) is None:
                other.rename(image)
                return True
            other.unlink()
        return False

    def _discard_forgotten(self, generations: Path, tree: bytes) -> None:
        """Delete images without a generation: after a restart of the machine or a killed build."""
        for partial in self._folder.glob("attr-*.erofs.partial"):
            partial.unlink()
        for image in self._folder.glob("attr-*.erofs"):
            _, number, of_tree = image.stem.split("-")
            if of_tree != tree.hex() and not (generations / number).exists():
                image.unlink()
