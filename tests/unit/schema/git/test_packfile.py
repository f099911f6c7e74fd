"""What both sides write of a pack."""

import struct
from hashlib import sha1

import pytest

from huai_schema.git.packfile import Place, object_header, pack_header, pack_index


def test_the_header() -> None:
    assert pack_header(258) == b"PACK\0\0\0\2\0\0\1\2"


@pytest.mark.parametrize(
    ("size", "header"),
    [
        (0, b"\x30"),
        (15, b"\x3f"),
        (16, b"\xb0\x01"),
        (2047, b"\xbf\x7f"),
        (2048, b"\xb0\x80\x01"),
        (64 << 20, b"\xb0\x80\x80\x80\x02"),
    ],
)
def test_the_header_of_an_object(size: int, header: bytes) -> None:
    assert object_header(3, size) == header


def test_an_index() -> None:
    checksum = b"c" * 20
    first, second, third = b"\1" + b"a" * 19, b"\1" + b"b" * 19, b"\xff" * 20
    places = {third: Place(12, 7), second: Place(1 << 31, 8), first: Place((1 << 31) - 1, 9)}
    index = pack_index(places, checksum)
    assert index[:8] == b"\xfftOc\0\0\0\2"
    fanout = struct.unpack(">256I", index[8:1032])
    assert fanout == (0, *[2] * 254, 3)
    assert index[1032:1092] == first + second + third
    assert struct.unpack(">3I", index[1092:1104]) == (9, 8, 7)
    # Beyond 31 bits: a place in the table of 64 bits behind.
    assert struct.unpack(">3I", index[1104:1116]) == ((1 << 31) - 1, 1 << 31, 12)
    assert struct.unpack(">Q", index[1116:1124]) == (1 << 31,)
    assert index[1124:1144] == checksum
    assert index[1144:] == sha1(index[:1144], usedforsecurity=False).digest()
