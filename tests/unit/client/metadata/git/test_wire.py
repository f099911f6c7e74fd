"""Replies of git's protocol: the pack comes out, and no other bytes pass."""

from io import BytesIO

import pytest

from huai_client.metadata.git.wire import read_pack
from huai_client.metadata.http import NotServedError
from huai_schema.errors import FormatError
from tests.support.pktline import FLUSH_PACKET, packet

SHALLOW = packet(b"shallow-info\n") + packet(b"shallow " + b"0" * 40) + b"0001"
BEGIN = SHALLOW + packet(b"packfile\n")


def test_the_pack_in_a_reply() -> None:
    packets = (b"\x01PA", b"\x02counting\n", b"\x01CK")
    data: list[bytes] = []
    read_pack(BytesIO(BEGIN + b"".join(map(packet, packets)) + FLUSH_PACKET).read, data.append, "")
    assert data == [b"PA", b"CK"]


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        (b"", NotServedError, "empty reply"),
        (SHALLOW, FormatError, "ends early"),
        (FLUSH_PACKET, FormatError, "without a pack"),
        (BEGIN + packet(b"\x01PACK"), FormatError, "ends early"),
        (BEGIN + b"00ffPACK", FormatError, "ends early"),
        (BEGIN + b"zzzz", FormatError, "malformed packet"),
        (b"0001" * 300_000, FormatError, "besides the pack"),
        (BEGIN + packet(b"\x01") * 300_000, FormatError, "besides the pack"),
        (packet(b"ERR not \x1b our ref"), NotServedError, r"not \\x1b our ref"),
        (BEGIN + packet(b"\x03out of memory"), NotServedError, "out of memory"),
    ],
)
def test_any_other_reply(reply: bytes, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        read_pack(BytesIO(reply).read, lambda _: None, "http://upstream")
