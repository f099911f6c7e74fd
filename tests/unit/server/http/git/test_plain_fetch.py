"""Which requests are of the one form that a file may answer."""

import pytest

from huai_client.metadata.git.protocol import encode_request
from huai_schema.git.pktline import packet
from huai_server.http.git.plain_fetch import PlainFetch, opening, plain_fetch

ONE, TWO, THREE = "1" * 40, "2" * 40, "3" * 40
CAPABILITIES = "side-band-64k thin-pack shallow"


@pytest.mark.parametrize("haves", [(), (TWO,), (TWO, THREE)])
def test_what_huai_client_asks(haves: tuple[str, ...]) -> None:
    assert plain_fetch(encode_request(ONE, haves, haves)) == PlainFetch(ONE, haves)
    assert plain_fetch(encode_request(ONE, haves, haves[:1])) == PlainFetch(ONE, haves)


def request(*lines: str) -> bytes:
    return b"".join(packet(line.encode()) if line else b"0000" for line in lines)


PLAIN = (f"want {ONE} {CAPABILITIES}\n", "deepen 1", "", f"have {TWO}\n", "done\n")


def test_the_form_itself() -> None:
    assert plain_fetch(request(*PLAIN)) == PlainFetch(ONE, (TWO,))


def test_anything_else_is_left_to_git(subtests: pytest.Subtests) -> None:
    for place, line in [
        (0, f"want {ONE}"),
        (0, f"want {ONE} {CAPABILITIES} multi_ack"),
        (0, f"want {ONE} {CAPABILITIES} filter"),
        (0, f"want {ONE} side-band-64k shallow"),
        (0, f"want {ONE[1:]} {CAPABILITIES}"),
        (0, f"want {ONE}0 {CAPABILITIES}"),
        (0, f"want ../../{ONE[6:]} {CAPABILITIES}"),
        (0, f"want {'A' * 40} {CAPABILITIES}"),
        (0, "deepen 1"),
        (1, "deepen 2"),
        (1, "deepen 11"),
        (1, "deepen-since 1"),
        (1, f"want {TWO}"),
        (2, "deepen 1"),
        (3, ""),
        (3, f"have {TWO}/../x"),
        (3, f"have {'g' * 40}"),
        (3, f"shallow {TWO}"),
        (4, ""),
        (4, f"have {TWO}"),
    ]:
        with subtests.test(place=place, line=line):
            lines = list(PLAIN)
            lines[place] = line
            assert plain_fetch(request(*lines)) is None


def test_more_or_less_is_left_to_git(subtests: pytest.Subtests) -> None:
    for lines in [
        (PLAIN[0], f"shallow {THREE}", *PLAIN[1:]),
        (PLAIN[0], "filter blob:none", *PLAIN[1:]),
        (*PLAIN[:3], *PLAIN[3:4] * 17, PLAIN[4]),
        (*PLAIN, ""),
        PLAIN[:4],
        PLAIN[2:],
        ("", "", ""),
        ("",),
        (),
    ]:
        with subtests.test(lines=lines):
            assert plain_fetch(request(*lines)) is None


def test_other_special_packets_are_left_to_git() -> None:
    assert plain_fetch(request(*PLAIN).replace(b"0000", b"0001")) is None
    assert plain_fetch(b"0001" + request(*PLAIN)) is None
    assert plain_fetch(b"0001" + request(PLAIN[0], "")) is None
    assert plain_fetch(b"00010001" + request("")) is None


def test_what_stands_before_the_pack() -> None:
    shallow = b"0034shallow " + b"1" * 40 + b"0000"
    assert opening(ONE, None) == shallow + b"0008NAK\n"
    assert opening(ONE, TWO) == shallow + b"0031ACK " + b"2" * 40 + b"\n"
