"""From a snapshot to an image file, which appears whole and durable or not at all.

The engine places what is in it (`native/format/src/erofs`).

Equal trees, and owners with equal numbers, give images that are equal byte for byte.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from huai_native import _native
from huai_program.durable import sync_folder
from huai_schema.codec.listing import Listing
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.layout.snapshot import Snapshot
from huai_server.fallback.erofs.seal import write_seal
from huai_server.fallback.owners import OwnerLookup, OwnerNumbers
from huai_server.state.errors import storage_errors


class ImageLimitError(HuaiError):
    """A tree that no image can hold."""

    exit_code = ExitCode.FALLBACK


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
        partial.unlink(missing_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(partial, flags, 0o600)
        try:
            built = _write(listings, tree, partial, handle, owners)
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
    listings: Callable[[], Iterable[Listing]],
    tree: bytes,
    partial: Path,
    handle: int,
    owners: OwnerLookup,
) -> Built:
    numbers = OwnerNumbers(owners)
    with closing(_native.ImageBuilder(os.fsencode(partial), numbers.pair)) as builder:
        for listing in listings():
            if b"\th" in listing.leaves:
                builder.count_links(listing.path, listing.leaves)
        for path, attributes, leaves, _ in listings():
            builder.add(path, attributes, leaves)
        blocks = builder.finish(_native.Blake3(tree).digest()[:16])
        entries = builder.entries
    if blocks is None:
        raise ImageLimitError(
            f"{entries} entries need an image of more than 16 TiB",
            hint='serve this module from another kind of attr tree (fallback.kind = "sparse")',
        )
    return Built(entries, write_seal(handle, blocks, tree, numbers.table()))
