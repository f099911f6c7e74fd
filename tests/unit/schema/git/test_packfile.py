"""The header of a pack."""

from huai_schema.git.packfile import pack_header


def test_the_header() -> None:
    assert pack_header(258) == b"PACK\0\0\0\2\0\0\1\2"
