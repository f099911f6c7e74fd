"""Pack indices, byte for byte."""

import struct
from hashlib import sha1

import pytest

from huai_native._native import pack_index


def test_an_index() -> None:
    checksum = b"c" * 20
    first, second, third = b"\1" + b"a" * 19, b"\1" + b"b" * 19, b"\xff" * 20
    places = [(third, 12, 7), (second, 1 << 31, 8), (first, (1 << 31) - 1, 9)]
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


def test_what_is_no_id() -> None:
    with pytest.raises(ValueError, match="20 bytes"):
        pack_index([(b"short", 12, 0)], b"c" * 20)
    with pytest.raises(ValueError, match="20 bytes"):
        pack_index([], b"short")
