"""From a snapshot to an image file, which appears whole and durable or not at all.

The engine places what is in it (`native/format/src/erofs`).

Equal trees, and owners with equal numbers, give images that are equal byte for byte.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cache
from pathlib import Path

from huai_native import _native
from huai_program.durable import replacing
from huai_schema.codec.escaping import escape
from huai_schema.codec.listing import Listing
from huai_schema.errors import ExitCode, HuaiError
from huai_server.fallback.erofs.seal import BLOCK, seal
from huai_server.fallback.owners import OwnerIds
from huai_server.state.errors import storage_errors


class ImageLimitError(HuaiError):
    """A tree that no image can hold."""

    exit_code = ExitCode.FALLBACK


def write_image(
    listings: Callable[[], Iterable[Listing]], tree: bytes, image: Path, owners: OwnerIds
) -> None:
    """Write the image of the git tree `tree`; at `image` it appears whole and durable.

    `listings` gives its listings in tree order, and is called twice.  `StorageError` if there is no
    room; an image at the same place is replaced, and stays with those who have it mounted.
    """
    partial = image.with_name(f"{image.name}.partial")
    table: set[bytes] = set()

    @cache
    def pair(owner: bytes, group: bytes) -> tuple[int, int]:
        uid, gid = owners.uid(owner), owners.gid(group)
        table.add(b"user\t%s\t%d\n" % (escape(owner), uid))
        table.add(b"group\t%s\t%d\n" % (escape(group), gid))
        return uid, gid

    with storage_errors(image), replacing(image, partial, permissions=0o600) as file:
        with closing(_native.ImageBuilder(os.fsencode(partial), pair)) as builder:
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
        file.seek(blocks * BLOCK)
        file.write(seal(partial, blocks, tree, b"".join(sorted(table))))
