"""The conditions of a request (RFC 9110, section 13)."""

import pytest

from huai_server.http.asgi.conditions import Validators, judge, names_weakly

TAG = '"t"'
EARLIER, DATE, LATER = (f"Sun, 13 Sep 2020 12:26:{second} GMT" for second in (39, 40, 41))
KNOWN = Validators(TAG, 1_600_000_000)


def test_how_a_get_ends(subtests: pytest.Subtests) -> None:
    for headers, status in [
        ({}, None),
        ({"if-match": "*"}, None),
        ({"if-match": TAG, "if-unmodified-since": EARLIER}, None),
        ({"if-match": 'W/"t"'}, 412),
        ({"if-match": ""}, 412),
        ({"if-unmodified-since": DATE}, None),
        ({"if-unmodified-since": EARLIER}, 412),
        ({"if-unmodified-since": "soon"}, None),
        ({"if-none-match": 'W/"t"'}, 304),
        ({"if-none-match": '"a", "t"'}, 304),
        ({"if-none-match": '"a"', "if-modified-since": LATER}, None),
        ({"if-modified-since": DATE}, 304),
        ({"if-modified-since": LATER}, 304),
        ({"if-modified-since": EARLIER}, None),
        ({"if-modified-since": "Sun, 99 Sep 9999999 12:26:40 GMT"}, None),
        ({"if-match": '"a"', "if-none-match": TAG}, 412),
    ]:
        with subtests.test(headers=headers, status=status):
            assert judge(headers, KNOWN) == status


@pytest.mark.parametrize("date", ["", ",", "0", "Sun, 06 Nov x 08:49:37 GMT", "x" * 100_000])
def test_what_is_no_date_is_no_condition(date: str) -> None:
    for name in ("if-modified-since", "if-unmodified-since"):
        assert judge({name: date}, KNOWN) is None


def test_weak_tags_are_compared_too() -> None:
    assert names_weakly('"a", W/"t"', 'W/"t"')
    assert names_weakly("*", 'W/"t"')
    assert not names_weakly('"a"', 'W/"t"')
