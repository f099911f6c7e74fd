"""Headers of a response, and their values."""

import pytest

from huai_client.metadata.curl.head import Head, read_head, retry_after


def test_a_head() -> None:
    lines = b"HTTP/1.1 404 Not  Found\r\nA: 1\r\na: 2\r\nContent-Type: Text/HTML; x=y\r\n\r\n"
    head = read_head(lines)
    assert (head.status, head.reason, head.content_type) == (404, "Not  Found", "text/html")
    assert head.fields["a"] == "1"
    assert read_head(b"HTTP/2 204 \r\n\r\n") == Head(204, {})
    assert read_head(b"SSH-2.0-x\r\n").status == 0


def test_when_to_come_back(subtests: pytest.Subtests) -> None:
    for text, seconds in [
        (None, 0),
        ("120", 120),
        (" 0 ", 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 90),
        ("Wed, 21 Oct 2015 07:20:00 GMT", 0),
        ("soon", 0),
        ("-1", 0),
        ("1.5", 0),
        ("9" * 5000, 0),
        ("Wed, 21 Oct 99999999999 07:28:00 GMT", 0),
    ]:
        with subtests.test(text=text, seconds=seconds):
            assert retry_after(text, 1445412390.0) == seconds
