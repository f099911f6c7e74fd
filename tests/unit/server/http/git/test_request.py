from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_schema.git.pktline import packet
from huai_server.http.asgi.errors import HttpError
from huai_server.http.git.request import parse_request


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with suppress(HttpError):
        assert len(parse_request(body, 2).digest) == 32


def request(*capabilities: bytes, arguments: tuple[bytes, ...] = (b"peel",)) -> bytes:
    return b"".join([*map(packet, capabilities), b"0001", *map(packet, arguments), b"0000"])


def test_the_clients_name_does_not_matter() -> None:
    one = parse_request(request(b"command=ls-refs\n", b"agent=git/2.30"), 2)
    other = parse_request(request(b"command=ls-refs\n", b"agent=git/2.47\n"), 2)
    assert one == other
    assert one.command == b"ls-refs"


def test_the_clients_name_before_protocol_2_does_not_matter() -> None:
    want = b"want " + b"1" * 40 + b" ofs-delta"
    rest = b"0000" + packet(b"done\n")
    requests = [packet(want + name) + rest for name in (b" agent=git/2.30\n", b" agent=huai", b"")]
    assert len({parse_request(request, 0) for request in requests}) == 1
    assert parse_request(requests[0], 0).command == b""


def test_a_name_ends_at_whatever_git_may_take_for_a_space(subtests: pytest.Subtests) -> None:
    for space in [b"\t", b"\r", b"\v", b"\f", b"\n", b" ", b"\x80"]:
        with subtests.test(space=space):
            want = b"want " + b"1" * 40
            plain = parse_request(packet(want + b" agent=x") + b"0000", 0)
            assert (
                parse_request(packet(want + b" agent=x" + space + b"side-band-64k\n") + b"0000", 0)
                != plain
            )
            plain = parse_request(request(b"command=fetch", b"agent=x"), 2)
            assert parse_request(request(b"command=fetch", b"agent=x" + space + b"y"), 2) != plain


def test_a_request_with_a_nul_is_refused() -> None:
    for payload in (b"agent=x\0y", b"command=ls-refs\0", b"\0"):
        for body in (request(payload), request(b"command=fetch", arguments=(payload,))):
            with pytest.raises(HttpError, match="NUL"):
                parse_request(body, 2)


def test_everything_else_matters(subtests: pytest.Subtests) -> None:
    for other in [
        request(b"command=fetch", b"agent=a"),
        request(b"command=ls-refs", b"object-format=sha256"),
        request(b"command=ls-refs", b"session-id=1"),  # a server may not know it
        request(b"command=ls-refs agent=a"),
        request(b"command=ls-refs", arguments=(b"symrefs",)),
        request(b"command=ls-refs", arguments=(b"peel", b"agent=a")),
        request(b"command=ls-refs", arguments=(b"pe", b"el")),
        request(b"command=ls-refs")[:-4],
        request(b"command=ls-refs").replace(b"0001", b"0002"),
    ]:
        with subtests.test(other=other):
            assert (
                parse_request(other, 2).digest
                != parse_request(request(b"command=ls-refs"), 2).digest
            )
