"""Answers of HTTP, byte by byte."""

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_client.metadata.http_answer import AnswerError, Body, Head, read_head

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: Chunked\r\n"


def answer(data: bytes, size: int = 1 << 16) -> tuple[Head, bytes]:
    stream = io.BufferedReader(io.BytesIO(data))
    head = read_head(stream)
    body = Body(head, stream)
    return head, b"".join(iter(lambda: body.read(size), b""))


def test_where_a_body_ends(subtests: pytest.Subtests) -> None:
    for size in [1, 2, 3, 1 << 16]:
        for head, body, expected in [
            (b"Content-Length: 5\r\n\r\n", b"hello more", b"hello"),
            (b"Content-Length: 5, 5\r\n\r\n", b"hello", b"hello"),
            (b"Content-Length: 9\r\n\r\n", b"hello", b"hello"),
            (b"\r\n", b"hello", b"hello"),
            (b"Content-Length: 0\r\n\r\n", b"hello", b""),
            (CHUNKED + b"\r\n", b"3;a=b\r\nhel\r\n02\r\nlo\r\n0\r\nX: y\r\n\r\n", b"hello"),
            (CHUNKED + b"Content-Length: 1\r\n\r\n", b"2\r\nhi\r\n0\r\n\r\n", b"hi"),
        ]:
            with subtests.test(size=size, head=head, body=body, expected=expected):
                assert answer(OK + head + body, size)[1] == expected


def test_a_head() -> None:
    text = b"HTTP/1.0 404 Not  Found \nA: 1\nb:\t2 \n 3\na: 4\nContent-Type: Text/HTML; x=y\n\n"
    head, _ = answer(text)
    assert (head.status, head.reason, head.content_type) == (404, "Not  Found", "text/html")
    assert (head.headers["a"], head.headers["b"]) == ("1, 4", "2 3")


def test_interim_answers_are_passed_over() -> None:
    interim = b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"
    assert answer(interim + b"HTTP/1.1 204\r\n\r\nrest") == (Head(204, "", {}, stays=True), b"")


def test_what_is_no_answer(subtests: pytest.Subtests) -> None:
    for data in [
        b"",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2000 x\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 101,
        OK + b"no colon\r\n\r\n",
        OK + b" blank: first\r\n\r\n",
        OK + b"a b: c\r\n\r\n",
        OK + b"A: b\r\n" * 101 + b"\r\n",
        OK + b"A: " + b"x" * 65_536 + b"\r\n\r\n",
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        OK + b"Content-Length: -5\r\n\r\nhello",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
    ]:
        with subtests.test(data=data):
            with pytest.raises(AnswerError):
                answer(data)


PARTS = st.sampled_from(
    [OK, b"\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"3\r\n", b"abc"]
)


@given(st.lists(PARTS | st.binary(max_size=4)))
def test_any_bytes_are_an_answer_or_none(parts: list[bytes]) -> None:
    with contextlib.suppress(AnswerError):
        head, body = answer(b"".join(parts), 2)
        assert 200 <= head.status <= 999
        assert body in b"".join(parts) or "transfer-encoding" in head.headers
