"""What is asked, and how the answer is understood."""

import pytest

from huai_client.metadata.git.protocol import encode_request, pack_of
from huai_client.metadata.http import UpstreamError
from huai_schema.errors import FormatError
from huai_schema.git.pktline import FLUSH_PACKET, packet

ONE, TWO, NEW = "1" * 40, "2" * 40, "f" * 40
START = packet(b"shallow " + NEW.encode()) + FLUSH_PACKET + packet(b"NAK\n")


def understood(reply: bytes) -> bytes:
    parts = iter([reply])
    return b"".join(pack_of(lambda _: next(parts, b""), "here"))


def test_the_request_as_git_wants_it() -> None:
    assert (
        encode_request(NEW, [TWO, ONE], [TWO])
        == (
            f"007awant {NEW} side-band-64k thin-pack ofs-delta no-progress shallow"
            f" agent=huai-client\n"
            f"0034shallow {TWO}000cdeepen 100000032have {ONE}\n0032have {TWO}\n0009done\n"
        ).encode()
    )


def test_equal_states_send_equal_bytes() -> None:
    again = encode_request(NEW, {TWO, ONE}, {TWO, ONE})
    assert again == encode_request(NEW, [ONE, TWO], [ONE, TWO])


@pytest.mark.parametrize(
    "start",
    [
        START,
        FLUSH_PACKET + packet(b"NAK\n"),
        packet(b"unshallow " + ONE.encode() + b"\n")
        + FLUSH_PACKET
        + packet(b"ACK " + ONE.encode()),
        FLUSH_PACKET + packet(b"ACK " + ONE.encode() + b"\n") + packet(b"ACK " + TWO.encode()),
    ],
)
def test_the_pack_is_found(start: bytes) -> None:
    reply = start + packet(b"\x01PA") + packet(b"\x02talk") + packet(b"\x01") + packet(b"\x01CK")
    assert understood(reply + FLUSH_PACKET) == b"PACK"


def test_what_the_upstream_says_goes_to_the_user_in_one_plain_line() -> None:
    for reply in (START + packet(b"\x03no\x1b[2J\nway\xff"), packet(b"ERR no\x1b[2J\nway\xff")):
        with pytest.raises(
            UpstreamError, match=r"^here: the upstream says: no\\x1b\[2J way"
        ) as seen:
            understood(reply)
        assert seen.value.message.isprintable()


def test_a_long_speech_is_cut() -> None:
    with pytest.raises(UpstreamError) as seen:
        understood(packet(b"ERR " + b"x" * 60_000))
    assert len(seen.value.message) < 400


def test_anything_else_is_refused(subtests: pytest.Subtests) -> None:
    for reply in [
        packet(b"hello"),
        packet(b"shallow 12"),
        FLUSH_PACKET + packet(b"\x04what"),
        FLUSH_PACKET + packet(b""),
        START + packet(b"NOK\n"),
        b"<html><body>",
    ]:
        with subtests.test(reply=reply):
            with pytest.raises(FormatError, match="here"):
                understood(reply + FLUSH_PACKET)
