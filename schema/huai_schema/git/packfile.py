"""Git's packs and pack indices as bytes (git's own documentation: gitformat-pack).

Pure: where packs are put, and when they become visible, is each side's own business.
Rule: only what both sides write stands here; reading a pack is hostile input, and the
business of the one side that does it.
"""

import struct
from collections.abc import Mapping
from hashlib import sha1
from typing import NamedTuple

from huai_schema.git.objects import Kind

KIND_CODES: dict[Kind, int] = {"commit": 1, "tree": 2, "blob": 3}
"""How an object's header names its kind."""
HEADER_BYTES = 12
CHECKSUM_BYTES = 20
"""SHA-1 of all that stands before it."""
_SIGNATURE = b"PACK"
_VERSION = 2
_INDEX_HEAD = b"\xfftOc\0\0\0\2"
_LARGE_OFFSET = 1 << 31


class Place(NamedTuple):
    """Where an object stands in its pack."""

    offset: int
    crc: int
    """CRC-32 of the object's header and compressed data."""


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


def pack_index(places: Mapping[bytes, Place], checksum: bytes) -> bytes:
    """A version 2 index of the pack that ends with `checksum`; `places` by object id."""
    oids = sorted(places)
    fanout = [0] * 256
    for oid in oids:
        fanout[oid[0]] += 1
    for byte in range(1, 256):
        fanout[byte] += fanout[byte - 1]
    offsets, large = [], []
    for oid in oids:
        offset = places[oid].offset
        if offset >= _LARGE_OFFSET:
            large.append(offset)
            offset = _LARGE_OFFSET | len(large) - 1
        offsets.append(offset)
    body = b"".join(
        (
            _INDEX_HEAD,
            struct.pack(">256I", *fanout),
            *oids,
            struct.pack(f">{len(oids)}I", *(places[oid].crc for oid in oids)),
            struct.pack(f">{len(offsets)}I", *offsets),
            struct.pack(f">{len(large)}Q", *large),
            checksum,
        )
    )
    return body + sha1(body, usedforsecurity=False).digest()
