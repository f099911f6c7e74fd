"""What both sides write of a pack."""

import pytest

from huai_schema.git.packfile import object_header, pack_header


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
