from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_server.http.pktline import packets, parse
from huai_server.http.refusal import RefusedError

SPECIAL = {0: b"0000", 1: b"0001", 2: b"0002"}


def frame(packet: bytes | int) -> bytes:
    return SPECIAL[packet] if isinstance(packet, int) else b"%04x" % (len(packet) + 4) + packet


@given(st.lists(st.binary(max_size=300) | st.sampled_from([0, 1, 2]), min_size=1))
def test_what_was_framed_is_read_back(content: list[bytes | int]) -> None:
    assert list(packets(b"".join(map(frame, content)))) == content


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with suppress(RefusedError):
        assert len(parse(body).digest) == 32


def request(*capabilities: bytes, arguments: tuple[bytes, ...] = (b"peel",)) -> bytes:
    return b"".join([*map(frame, capabilities), b"0001", *map(frame, arguments), b"0000"])


def test_the_clients_name_does_not_matter() -> None:
    one = parse(request(b"command=ls-refs\n", b"agent=git/2.30", b"session-id=7"))
    other = parse(request(b"command=ls-refs\n", b"agent=git/2.47\n"))
    assert one == other
    assert one.command == b"ls-refs"


def test_the_clients_name_before_protocol_2_does_not_matter() -> None:
    one = parse(frame(b"want abc ofs-delta agent=git/2.30\n") + b"0000" + frame(b"done\n"))
    other = parse(
        frame(b"want abc ofs-delta agent=huai session-id=9\n") + b"0000" + frame(b"done\n")
    )
    assert one == other
    assert one.command == b""


@pytest.mark.parametrize(
    "other",
    [
        request(b"command=fetch", b"agent=a"),
        request(b"command=ls-refs", b"object-format=sha256"),
        request(b"command=ls-refs", arguments=(b"symrefs",)),
        request(b"command=ls-refs", arguments=(b"peel", b"agent=a")),
        request(b"command=ls-refs", arguments=(b"pe", b"el")),
        request(b"command=ls-refs")[:-4],
        request(b"command=ls-refs").replace(b"0001", b"0002"),
    ],
)
def test_everything_else_matters(other: bytes) -> None:
    assert parse(other).digest != parse(request(b"command=ls-refs")).digest
