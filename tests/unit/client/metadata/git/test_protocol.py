"""The framing of what comes back."""

from collections.abc import Callable

import pytest

from huai_client.metadata.git.protocol import Packets
from huai_client.metadata.http import UpstreamError
from huai_schema.errors import FormatError
from huai_schema.git.pktline import FLUSH_PACKET, packet


def stream(data: bytes, piece: int) -> Callable[[int], bytes]:
    pieces = iter([data[at : at + piece] for at in range(0, len(data), piece)])
    return lambda _: next(pieces, b"")


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_sections_come_back_however_they_arrive(piece: int) -> None:
    data = packet(b"one\n") + packet(b"") + FLUSH_PACKET + packet(b"x" * 65_516) + FLUSH_PACKET
    packets = Packets(stream(data, piece), "here")
    assert list(packets.section()) == [b"one\n", b""]
    assert list(packets.section()) == [b"x" * 65_516]


def test_a_cut_anywhere_is_seen() -> None:
    data = packet(b"one\n") + packet(b"two") + FLUSH_PACKET
    for end in range(len(data)):
        with pytest.raises(UpstreamError, match="here: the reply ended early"):
            list(Packets(stream(data[:end], 100), "here").section())


def test_what_is_no_packet_is_refused(subtests: pytest.Subtests) -> None:
    for head in [b"0003", b"fff1", b"ffff", b"<htm", b"-001", b"0x10"]:
        with subtests.test(head=head):
            with pytest.raises(FormatError, match="does not begin a packet"):
                Packets(stream(head + b"x" * 70_000, 100_000), "here").next()


def test_a_special_packet_that_ends_no_section_is_refused() -> None:
    with pytest.raises(FormatError, match="was not expected here"):
        Packets(stream(b"0001" + FLUSH_PACKET, 100), "here").next()


def test_no_more_is_read_than_needed() -> None:
    reads: list[int] = []

    def read(size: int) -> bytes:
        reads.append(size)
        return FLUSH_PACKET

    assert Packets(read, "here").next() is None
    assert len(reads) == 1
