"""What both sides write of git's packs (git's own documentation: gitformat-pack).

Pure: where packs are put, and when they become visible, is each side's own business.
Reading packs, and their indices, are the engine's (`native/format/src/git`).
"""

import struct

CHECKSUM_BYTES = 20
"""SHA-1 of all that stands before it."""
_SIGNATURE = b"PACK"
_VERSION = 2


def pack_header(objects: int) -> bytes:
    """The first bytes of a pack of so many objects."""
    return struct.pack(">4sII", _SIGNATURE, _VERSION, objects)
