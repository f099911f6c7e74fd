"""From a snapshot to an image file, which appears whole and durable or not at all.

Equal trees, and owners with equal numbers, give images that are equal byte for byte.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from huai_native import _native
from huai_schema.codec.lines import decode_leaves
from huai_schema.codec.listing import Listing
from huai_schema.entries import File
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import RelPath
from huai_schema.program.durable import sync_folder
from huai_server.errors import storage_errors
from huai_server.fallback.erofs.blocks import BlockWriter
from huai_server.fallback.erofs.builder import ImageBuilder
from huai_server.fallback.erofs.seal import write_seal
from huai_server.fallback.owners import OwnerLookup, OwnerNumbers


class Built(NamedTuple):
    """What an image holds."""

    entries: int
    """Paths, the root among them."""
    size: int
    """Bytes of the file."""


def build_image(snapshot: Snapshot, image: Path, owners: OwnerLookup) -> Built:
    """Write the image of `snapshot`; at `image` it appears whole and durable, or not at all.

    The snapshot is read twice.  `StorageError` if there is no room; an image at the same
    place is replaced, and stays with those who have it mounted.
    """
    return write_image(snapshot.listings, snapshot.tree, image, owners)


def write_image(
    listings: Callable[[], Iterable[Listing]], tree: bytes, image: Path, owners: OwnerLookup
) -> Built:
    """The same, from listings in tree order, which can be asked for twice."""
    partial = image.with_name(f"{image.name}.partial")
    with storage_errors(image):
        handle = os.open(
            partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            built = _write(listings, tree, handle, owners)
            os.fsync(handle)
            partial.rename(image)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)
        sync_folder(image.parent)
    return built


def _write(
    listings: Callable[[], Iterable[Listing]], tree: bytes, handle: int, owners: OwnerLookup
) -> Built:
    numbers = OwnerNumbers(owners)
    builder = ImageBuilder(BlockWriter(handle), numbers, _count_links(listings()))
    for listing in listings():
        builder.add(listing)
    blocks = builder.finish(_native.Blake3(tree).digest()[:16])
    return Built(builder.entries, write_seal(handle, blocks, tree, numbers.table()))


def _count_links(listings: Iterable[Listing]) -> dict[RelPath, int]:
    """How many names each hardlink group has, by its first one."""
    counts: dict[RelPath, int] = {}
    for listing in listings:
        if b"\th" in listing.leaves:
            for entry in decode_leaves(listing.path, listing.leaves):
                if isinstance(entry, File) and entry.link is not None:
                    counts[entry.link] = counts.get(entry.link, 1) + 1
    return counts
