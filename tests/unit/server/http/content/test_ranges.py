"""What a Range header asks for."""

import pytest

from huai_server.http.content.ranges import MOST_RANGES, Span, spans_of


def test_ranges_of_ten_bytes(subtests: pytest.Subtests) -> None:
    for header, found in [
        ("bytes=0-0", [(0, 1)]),
        ("BYTES = 0-9", [(0, 10)]),
        ("bytes=3-", [(3, 10)]),
        ("bytes=-3", [(7, 10)]),
        ("bytes=-30", [(0, 10)]),
        ("bytes=8-99", [(8, 10)]),
        ("bytes=007-08", [(7, 9)]),
        ("bytes=,, 5-6 ,\t1-2,", [(5, 7), (1, 3)]),
        ("bytes=5-6,1-2,2-3", [(1, 4), (5, 7)]),
        ("bytes=0-1,2-3", [(0, 4)]),
        ("bytes=10-,9-", [(9, 10)]),
        ("bytes=10-", []),
        ("bytes=-0", []),
    ]:
        with subtests.test(header=header, found=found):
            assert spans_of(header, 10) == [Span(*each) for each in found]


def test_what_is_not_understood_asks_for_all(subtests: pytest.Subtests) -> None:
    for header in [
        *("", "bytes", "bytes=", "bytes= , ", "bytes=-", "bytes=2-1", "bytes=1", "bytes=1-2-3"),
        *("bytes=0-1,x", "lines=0-1", "bytes=0x1-2", "bytes=0-1 2-3", "bytes=\N{SUPERSCRIPT TWO}-"),
        "bytes=" + "1" * 1001 + "-",
    ]:
        with subtests.test(header=header):
            assert spans_of(header, 10) is None


def test_an_empty_file_has_no_ranges() -> None:
    assert spans_of("bytes=0-,-1", 0) == []


def test_too_many_are_none() -> None:
    each = [f"{2 * n}-{2 * n}" for n in range(MOST_RANGES + 1)]
    assert len(spans_of("bytes=" + ",".join(each[:-1]), 1000) or ()) == MOST_RANGES
    assert spans_of("bytes=" + ",".join(each), 1000) == []
