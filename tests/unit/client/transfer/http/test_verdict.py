"""Verdicts on responses: exactly the requested bytes are accepted, and nothing else."""

import pytest

from huai_client.metadata.curl.head import Head, read_head
from huai_client.transfer.http.verdict import Meaning, RequestedRange, judge

WHOLE = RequestedRange(0, 1000, 1000)
REST = RequestedRange(400, 1000, 1000)
PIECE = RequestedRange(400, 500, 1000, from_start=False)
NOW = 1_700_000_000.0


def meaning(requested: RequestedRange, status: int, **fields: str) -> Meaning:
    headers = {name.replace("_", "-"): value for name, value in fields.items()}
    return judge(Head(status, headers), requested, NOW).meaning


def test_what_is_asked_for() -> None:
    assert [each.header for each in (WHOLE, REST, PIECE)] == ["", "400-999", "400-499"]
    assert RequestedRange(0, 5, 1000).header == "0-4"
    assert RequestedRange(0, 1000, 1000, from_start=False).header == "0-999"


def test_a_whole_file() -> None:
    assert meaning(WHOLE, 200, content_length="1000") is Meaning.TAKE
    assert meaning(WHOLE, 200) is Meaning.TAKE
    for length in ("999", "1001", "0"):
        assert meaning(WHOLE, 200, content_length=length) is Meaning.OTHER
    assert meaning(WHOLE, 206, content_range="bytes 0-999/1000") is Meaning.UNFIT


def test_the_rest_of_a_file() -> None:
    good = judge(Head(206, {"content-range": "bytes 400-999/1000"}), REST, NOW)
    assert (good.meaning, good.begins, good.most) == (Meaning.TAKE, 400, 600)
    start = judge(Head(200, {"content-length": "1000"}), REST, NOW)
    assert (start.meaning, start.begins, start.most) == (Meaning.TAKE, 0, 1000)
    assert meaning(REST, 416) is Meaning.NO_RANGES
    assert meaning(REST, 206, content_range="bytes 400-999/*") is Meaning.TAKE
    assert meaning(REST, 206, content_range="bytes 400-999/1001") is Meaning.OTHER


def test_a_piece_of_another_range_is_refused(subtests: pytest.Subtests) -> None:
    for content_range in [
        *("", "bytes", "bytes 0-99/1000", "bytes 400-500/1000", "bytes 399-499/1000"),
        *("bytes 400-498/1000", "bytes */1000", "items 400-499/1000", "bytes 400-499"),
        *("bytes 400-499/1000, 0-1/1000", "bytes +400-499/1000", "bytes 400-499/" + "9" * 30),
    ]:
        with subtests.test(said=content_range):
            assert meaning(PIECE, 206, content_range=content_range) is Meaning.UNFIT


def test_a_piece() -> None:
    fields = {"content_range": "bytes 400-499/1000"}
    assert meaning(PIECE, 206, **fields) is Meaning.TAKE
    assert meaning(PIECE, 206, **fields, content_length="100") is Meaning.TAKE
    assert meaning(PIECE, 206, **fields, content_length="101") is Meaning.UNFIT
    assert meaning(PIECE, 200, content_length="1000") is Meaning.NO_RANGES
    assert meaning(PIECE, 200, content_length="1") is Meaning.OTHER


def test_an_encoding_that_was_not_asked_for() -> None:
    for encoding in ("gzip", "br", "GZIP", "identity, gzip"):
        assert meaning(WHOLE, 200, content_encoding=encoding) is Meaning.UNFIT
        assert meaning(WHOLE, 200, content_encoding=encoding, content_length="30") is Meaning.UNFIT
    assert meaning(WHOLE, 200, content_encoding="identity") is Meaning.TAKE


def test_a_compressed_file_of_the_tree_may_be_called_compressed() -> None:
    fields = {"content_encoding": "x-gzip", "content_length": "1000"}
    assert meaning(WHOLE, 200, **fields) is Meaning.TAKE
    assert meaning(WHOLE._replace(proved=False), 200, **fields) is Meaning.UNFIT


def test_what_may_have_changed() -> None:
    changes = RequestedRange(0, 10, 10, proved=False, changes=True)
    assert meaning(changes, 200, content_length="500") is Meaning.TAKE
    assert meaning(changes, 200, content_length="0") is Meaning.TAKE
    assert meaning(changes, 200, content_length=str((1 << 20) + 1)) is Meaning.OTHER
    assert judge(Head(200, {}), changes, NOW).most == 1 << 20


def test_statuses(subtests: pytest.Subtests) -> None:
    for status, means in [
        (404, Meaning.MISSING),
        (410, Meaning.MISSING),
        (403, Meaning.DENIED),
        (451, Meaning.DENIED),
        (400, Meaning.DENIED),
        (401, Meaning.LOGIN),
        (407, Meaning.LOGIN),
        (429, Meaning.FULL),
        (503, Meaning.FULL),
        (408, Meaning.FAILING),
        (500, Meaning.FAILING),
        (502, Meaning.FAILING),
        (302, Meaning.REDIRECT),
        (308, Meaning.REDIRECT),
        (304, Meaning.UNFIT),
        (204, Meaning.UNFIT),
        (0, Meaning.UNFIT),
        (999, Meaning.UNFIT),
    ]:
        with subtests.test(status=status, means=means):
            assert meaning(WHOLE, status) is means


def test_how_long_to_leave_a_full_server_alone() -> None:
    def after(text: str) -> float:
        return judge(Head(503, {"retry-after": text}), WHOLE, NOW).retry_after

    assert after("7") == 7
    assert after("Tue, 14 Nov 2023 22:13:30 GMT") == 10
    assert after("soon") == after("-1") == 0


def test_the_last_head_counts() -> None:
    lines = (
        b"HTTP/1.1 200 Connection established\r\nContent-Length: 1\r\n\r\n"
        b"HTTP/1.1 103 Early Hints\r\n\r\n"
        b"HTTP/2 404 \r\ncontent-LENGTH:  12 \r\nX: a:b\r\nContent-Length: 13\r\n\r\n"
    )
    assert read_head(lines) == Head(404, {"content-length": "12", "x": "a:b"})
    modified = b"HTTP/1.1 200 OK\r\nLast-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n\r\n"
    assert judge(read_head(modified), WHOLE, NOW).modified == NOW
