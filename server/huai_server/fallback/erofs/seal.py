"""The seal behind the file system in an image file: the tree that it shows, and a checksum.

An image of an earlier run is verified before it is mounted: the kernel checks the superblock only.
"""

import os
import re
from pathlib import Path

from huai_native import _native
from huai_schema.errors import ExitCode, HuaiError
from huai_server.fallback.erofs.ondisk import BLOCK, block_count
from huai_server.fallback.owners import OwnerLookup, first_changed
from huai_server.state.errors import storage_errors

_CHUNK = 1 << 20
_MOST_BYTES = 64 << 20
"""Of a seal; enough for the names of a million owners."""
_SEAL = re.compile(
    rb"(huai attr image 1\ntree ([0-9a-f]{40})\n"
    rb"((?:(?:user|group)\t[^\t\n]+\t[0-9]{1,10}\n)*))blake3 ([0-9a-f]{64})\n\0*"
)


class DamagedImageError(HuaiError):
    """An image is damaged, or of another tree."""

    exit_code = ExitCode.FALLBACK

    def __init__(self, image: Path, reason: str) -> None:
        """`reason` is for people."""
        super().__init__(f"{image}: {reason}", hint="delete the image and build it again")


def write_seal(handle: int, blocks: int, tree: bytes, table: bytes) -> int:
    """Close an image of `blocks` blocks; returns the size of the file.

    It describes the git tree `tree`, with the owners of `table` (`owners.OwnerNumbers`).
    """
    at = blocks * BLOCK
    text = b"huai attr image 1\ntree %s\n%s" % (tree.hex().encode(), table)
    seal = text + b"blake3 %s\n" % _digest(handle, at, text)
    seal += bytes(-len(seal) % BLOCK)
    while seal:
        written = os.pwrite(handle, seal, at)
        seal, at = seal[written:], at + written
    return at


def verify_image(image: Path, tree: bytes, owners: OwnerLookup) -> None:
    """Read all of an image; raises `DamagedImageError` unless it is whole, and of `tree`.

    An image in which an owner has another id than now is refused as well.
    """
    with storage_errors(image):
        handle = os.open(image, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            reason = _fault(handle, tree, owners)
        finally:
            os.close(handle)
    if reason is not None:
        raise DamagedImageError(image, reason)


def _fault(handle: int, tree: bytes, owners: OwnerLookup) -> str | None:
    size = block_count(os.pread(handle, BLOCK, 0)) * BLOCK
    rest = os.fstat(handle).st_size - size
    within = size > 0 and 0 < rest <= _MOST_BYTES
    seal = _SEAL.fullmatch(os.pread(handle, rest, size)) if within else None
    if seal is None:
        return "no image, or an incomplete one"
    text, of_tree, table, digest = seal.groups()
    if _digest(handle, size, text) != digest:
        return "its checksum is wrong"
    if bytes.fromhex(of_tree.decode()) != tree:
        return "an image of another tree"
    changed = first_changed(table, owners)
    return None if changed is None else f"the {changed} has another number now"


def _digest(handle: int, size: int, text: bytes) -> bytes:
    hasher = _native.Blake3(text)
    for at in range(0, size, _CHUNK):
        hasher.update(os.pread(handle, min(_CHUNK, size - at), at))
    return hasher.digest().hex().encode()
