"""The parts of git's packs that both sides write (gitformat-pack(5)).

Pure: each side decides where packs are stored and when they become visible.  The engine reads packs
and their indices (`native/format/src/git`).
"""

import struct

CHECKSUM_BYTES = 20
"""The length of the SHA-1 at the end of a pack, over everything before it."""
_SIGNATURE = b"PACK"
_VERSION = 2


def pack_header(objects: int) -> bytes:
    """Return the first bytes of a pack with this number of objects."""
    return struct.pack(">4sII", _SIGNATURE, _VERSION, objects)
