from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_schema.errors import FormatError
from huai_schema.git.pktline import packet, packet_length, split

SPECIAL = {0: b"0000", 1: b"0001", 2: b"0002"}


def frame(content: bytes | int) -> bytes:
    return SPECIAL[content] if isinstance(content, int) else packet(content)


@given(st.lists(st.binary(max_size=300) | st.sampled_from([0, 1, 2])))
def test_what_was_framed_is_read_back(content: list[bytes | int]) -> None:
    assert list(split(b"".join(map(frame, content)))) == content


@given(st.binary(max_size=400))
def test_any_bytes_are_split_or_refused(data: bytes) -> None:
    with suppress(FormatError):
        assert sum(len(frame(each)) for each in split(data)) == len(data)


def test_a_cut_is_seen_at_its_byte() -> None:
    data = packet(b"one") + packet(b"two")
    for end in range(len(data)):
        if end not in (0, len(packet(b"one"))):
            with pytest.raises(FormatError, match=r"^byte [07]: "):
                list(split(data[:end]))


def test_what_begins_no_packet_is_refused(subtests: pytest.Subtests) -> None:
    for header in [b"", b"004", b"0003", b"fff1", b"ffff", b"-001", b"0x10"]:
        with subtests.test(header=header):
            with pytest.raises(FormatError, match="does not begin a packet"):
                packet_length(header)


def test_the_longest_packet_is_taken() -> None:
    assert packet_length(b"fff0") == 65_520
