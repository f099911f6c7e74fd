"""An image file, which is written durably and as a whole, with a seal to verify it later.

The engine lays out the content (`native/export/src/erofs`).  The seal follows the file system and
has the tree that it shows, the ids of its owners and a checksum.  An image of an earlier run is
verified before it is mounted, because the kernel checks only the superblock, and a name may have
another id since.

Equal trees and owners with equal ids give images that are equal byte for byte.
"""

import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from huai_native import _native
from huai_program.durable import replacing
from huai_schema.codec.escaping import escape, unescape
from huai_schema.codec.listing import Listing
from huai_schema.errors import ExitCode, HuaiError
from huai_server.fallback.owners import OwnerIds
from huai_server.state.errors import storage_errors

BLOCK = 4096
"""The block size in bytes, which all kernels with 4 KiB pages support."""
_SUPERBLOCK_OFFSET = 1024
_MAGIC = 0xE0F5E1E2
_SUPERBLOCK = struct.Struct("<I32xI")
"""The magic and the number of blocks (Linux: fs/erofs/erofs_fs.h)."""
_CHUNK = 1 << 20
_MOST_BYTES = 64 << 20
"""The greatest size of a seal, enough for the names of a million owners."""
_SEAL = re.compile(
    rb"(huai attr image 1\ntree ([0-9a-f]{40})\n"
    rb"((?:(?:user|group)\t[^\t\n]+\t[0-9]{1,10}\n)*))blake3 ([0-9a-f]{64})\n\0*"
)


class ImageLimitError(HuaiError):
    """The tree is too large for an image."""

    exit_code = ExitCode.FALLBACK


def write_image(
    listings: Callable[[], Iterable[Listing]], tree: bytes, image: Path, owners: OwnerIds
) -> None:
    """Write the image of the git tree `tree` durably to `image`, in one step.

    `listings` returns its listings in tree order, and is called twice.  An existing image is
    replaced, but remains for those who have it mounted.  Raises `StorageError` if the disk is full.
    """
    partial = image.with_name(f"{image.name}.partial")
    table: set[bytes] = set()

    @cache
    def owner_ids(owner: bytes, group: bytes) -> tuple[int, int]:
        uid, gid = owners.uid(owner), owners.gid(group)
        table.add(b"user\t%s\t%d\n" % (escape(owner), uid))
        table.add(b"group\t%s\t%d\n" % (escape(group), gid))
        return uid, gid

    with storage_errors(image), replacing(image, partial, permissions=0o600) as file:
        with closing(_native.ImageBuilder(os.fsencode(partial), owner_ids)) as builder:
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
        file.write(_seal(partial, blocks, tree, b"".join(sorted(table))))


def _seal(image: Path, blocks: int, tree: bytes, table: bytes) -> bytes:
    """Return the seal for an image of `blocks` blocks.

    `table` has a line for each owner: `user` or `group`, the escaped name, the id.
    """
    text = b"huai attr image 1\ntree %s\n%s" % (tree.hex().encode(), table)
    with _open_image(image) as handle:
        sealed = text + b"blake3 %s\n" % _digest(handle, blocks * BLOCK, text)
    return sealed + bytes(-len(sealed) % BLOCK)


def image_damage(image: Path, tree: bytes, owners: OwnerIds) -> str | None:
    """Verify an image of `tree`; returns a description of what is wrong, or None.

    Reads the whole image.  An owner whose id has changed makes it unusable, too.
    """
    with storage_errors(image), _open_image(image) as handle:
        return _damage_of(handle, tree, owners)


@contextmanager
def _open_image(image: Path) -> Iterator[int]:
    handle = os.open(image, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)


def _damage_of(handle: int, tree: bytes, owners: OwnerIds) -> str | None:
    size = _block_count(os.pread(handle, BLOCK, 0)) * BLOCK
    rest = os.fstat(handle).st_size - size
    within = size > 0 and 0 < rest <= _MOST_BYTES
    sealed = _SEAL.fullmatch(os.pread(handle, rest, size)) if within else None
    if sealed is None:
        return "not an image, or an incomplete one"
    text, of_tree, table, digest = sealed.groups()
    if _digest(handle, size, text) != digest:
        return "its checksum is wrong"
    if bytes.fromhex(of_tree.decode()) != tree:
        return "an image of another tree"
    for line in table.splitlines():
        kind, name, number = line.split(b"\t")
        find = owners.uid if kind == b"user" else owners.gid
        if find(unescape(name)) != int(number):
            owner = f"{kind.decode()} {name.decode('utf-8', 'backslashreplace')}"
            return f"the {owner} has another id now"
    return None


def _block_count(first_block: bytes) -> int:
    """Return the number of blocks in the superblock; 0 if it is not one."""
    if len(first_block) < BLOCK:
        return 0
    magic, blocks = _SUPERBLOCK.unpack_from(first_block, _SUPERBLOCK_OFFSET)
    return int(blocks) if magic == _MAGIC else 0


def _digest(handle: int, size: int, text: bytes) -> bytes:
    hasher = _native.Blake3(text)
    for at in range(0, size, _CHUNK):
        hasher.update(os.pread(handle, min(_CHUNK, size - at), at))
    return hasher.digest().hex().encode()
