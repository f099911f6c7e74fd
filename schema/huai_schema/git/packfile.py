"""What both sides write of git's packs (git's own documentation: gitformat-pack).

Pure: where packs are put, and when they become visible, is each side's own business.
Reading packs, and their indices, are the engine's (`native/format/src/git`).
"""

import struct

from huai_schema.git.objects import Kind

KIND_CODES: dict[Kind, int] = {"commit": 1, "tree": 2, "blob": 3}
"""How an object's header names its kind."""
HEADER_BYTES = 12
CHECKSUM_BYTES = 20
"""SHA-1 of all that stands before it."""
_SIGNATURE = b"PACK"
_VERSION = 2


def pack_header(objects: int) -> bytes:
    """The first bytes of a pack of so many objects."""
    return struct.pack(">4sII", _SIGNATURE, _VERSION, objects)


def object_header(kind: int, size: int) -> bytes:
    """What stands before an object's compressed data; `size` is the inflated one."""
    byte = kind << 4 | size & 15
    size >>= 4
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    header.append(byte)
    return bytes(header)
