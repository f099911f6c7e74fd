"""EROFS images as attr trees: each update makes a new image, mounted beside the old one."""

import os
from pathlib import Path

from huai_schema.codec.commits import Totals
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback.erofs.image import build_image
from huai_server.fallback.erofs.mounting import mount, unmount
from huai_server.fallback.erofs.owners import OwnerLookup
from huai_server.fallback.erofs.probe import check_mountable
from huai_server.fallback.erofs.seal import DamagedImageError, verify_image
from huai_server.fallback.kind import AttrTreeError
from huai_server.fallback.owners import OwnerIds

ENTRY_BYTES = 150
"""Measured: 139 to 148 an entry, names of up to 40 bytes; on the disk, and while it is read in
memory that the kernel takes back when it needs some."""


class _NoOwners:
    """All belongs to whoever builds."""

    def uid(self, name: bytes) -> int:  # noqa: ARG002 (the interface)
        return os.geteuid()

    def gid(self, name: bytes) -> int:  # noqa: ARG002 (the interface)
        return os.getegid()


class ErofsKind:
    """One image a generation (`kind.AttrTreeKind`), in a folder on a disk."""

    writable = False

    def __init__(self, images: Path) -> None:
        """`images` is the folder that holds the image files."""
        self._images = images

    def memory(self, totals: Totals) -> int:
        """Bytes of an image of so many entries, about."""
        return totals.entries * ENTRY_BYTES

    def check_room(self, folder: Path, totals: Totals) -> None:  # noqa: ARG002 (the interface)
        """`AttrTreeError` unless there is room for the image; `MountError` if none is mounted."""
        check_mountable(self._images)
        needed = self.memory(totals)
        room = os.statvfs(self._images)
        if room.f_bavail * room.f_frsize < needed:
            raise AttrTreeError(
                f"{self._images}: an image of {totals.entries:,} entries takes about "
                f"{needed >> 20:,} MiB, and less is free",
                hint="make room there",
            )

    def make(self, generation: Path, snapshot: Snapshot, owners: OwnerIds | None) -> int:
        """Build the image and mount it; one that is there already, and proved whole, will do."""
        image = self._images / f"attr-{generation.name}-{snapshot.tree.hex()}.erofs"
        numbers: OwnerLookup = owners or _NoOwners()
        self._discard_forgotten(generation.parent, snapshot.tree)
        if not self._take_over(image, snapshot.tree, numbers):
            build_image(snapshot, image, numbers)
        generation.mkdir()
        mount(image, generation)
        return 0

    def plan(self, generation: Path, old: Snapshot, new: Snapshot, owners: OwnerIds | None) -> None:
        """Never in place."""

    def discard(self, generation: Path) -> None:
        """Unmount it; clients that have it open finish on it."""
        unmount(generation)
        generation.rmdir()
        for image in self._images.glob(f"attr-{generation.name}-*.erofs"):
            image.unlink()

    def _take_over(self, image: Path, tree: bytes, owners: OwnerLookup) -> bool:
        """Let `image` be what another generation had of the same tree, if that is sound.

        So a machine that starts need not build again: its images are on the disk still.
        """
        for other in self._images.glob(f"attr-*-{tree.hex()}.erofs"):
            try:
                verify_image(other, tree, owners)
            except DamagedImageError:
                other.unlink()
            else:
                other.rename(image)
                return True
        return False

    def _discard_forgotten(self, generations: Path, tree: bytes) -> None:
        """Images of generations that went away with the memory they were mounted in, cut builds."""
        for partial in self._images.glob("attr-*.erofs.partial"):
            partial.unlink()
        for image in self._images.glob("attr-*.erofs"):
            _, number, of_tree = image.stem.split("-")
            if of_tree != tree.hex() and not (generations / number).exists():
                image.unlink()
