"""Server-sent events, from any server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_client.metadata.events import read_messages
from huai_client.metadata.http import UpstreamError


def read(*pieces: bytes) -> list[tuple[bytes, bytes]]:
    rest = iter(pieces)
    return list(read_messages(lambda: next(rest, b"")))


TEXT = b": hello\nretry: 5000\n\nid: 1\nevent: commit\ndata: {}\n\n:\n\ndata:one\ndata: two\n\n"
MESSAGES = [(b"", b""), (b"commit", b"{}"), (b"", b""), (b"", b"one\ntwo")]


@given(st.integers(1, len(TEXT)), st.booleans())
def test_messages_are_whole_however_they_come(size: int, crlf: bool) -> None:
    text = TEXT.replace(b"\n", b"\r\n") if crlf else TEXT
    assert read(*(text[at : at + size] for at in range(0, len(text), size))) == MESSAGES


def test_what_is_not_complete_is_no_message() -> None:
    assert read(b"event: commit\ndata: {}\n") == []


@pytest.mark.parametrize("piece", [b"x" * 8192, b"data: " + b"x" * 8180 + b"\n"])
def test_a_message_has_a_bound(piece: bytes) -> None:
    with pytest.raises(UpstreamError, match="more than"):
        read(*[piece] * 20)


@given(st.binary())
def test_any_bytes_give_messages(data: bytes) -> None:
    assert all(isinstance(each, tuple) for each in read(data) if data)
