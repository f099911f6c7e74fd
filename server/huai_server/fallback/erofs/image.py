"""An image file, which is written as a whole; the engine lays it out (`native/export/src/erofs`).

Equal trees and owners with equal ids give images that are equal byte for byte.  Rule: only the run
that wrote an image mounts it, because the kernel checks only the superblock, and a name may have
another id later.
"""

import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from huai_native import _native
from huai_program.durable import replacing
from huai_schema.codec.listing import Listing
from huai_schema.errors import ExitCode, HuaiError
from huai_server.fallback.owners import OwnerIds
from huai_server.state.errors import storage_errors

BLOCK = 4096
"""The block size in bytes, which all kernels with 4 KiB pages support."""


class ImageLimitError(HuaiError):
    """The tree is too large for an image."""

    exit_code = ExitCode.FALLBACK


def write_image(
    listings: Callable[[], Iterable[Listing]], tree: bytes, image: Path, owners: OwnerIds
) -> None:
    """Write the image of the git tree `tree` to `image`, in one step.

    `listings` returns its listings in tree order, and is called twice.  An existing image is
    replaced, but its mounts keep it.  Raises `StorageError` if the disk is full, and
    `ImageLimitError`.
    """
    partial = image.with_name(f"{image.name}.partial")

    @cache
    def owner_ids(owner: bytes, group: bytes) -> tuple[int, int]:
        return owners.uid(owner), owners.gid(group)

    with (
        storage_errors(image),
        replacing(image, partial, permissions=0o600, durable=False) as file,
    ):
        linked = (each for each in listings() if b"\th" in each.leaves)
        uuid = _native.Blake3(tree).digest()[:16]
        blocks, entries = _native.write_image(
            os.fsencode(partial), (linked, listings()), owner_ids, uuid
        )
        if blocks is None:
            raise ImageLimitError(
                f"{entries} entries need an image of more than 16 TiB",
                hint='serve this module from another kind of attr tree (fallback.kind = "sparse")',
            )
        file.truncate(blocks * BLOCK)
