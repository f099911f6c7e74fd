"""The conditions of a request (RFC 9110, section 13)."""

import pytest

from huai_server.http.asgi.conditions import Validators, judge, names_weakly, permits_range

TAG = '"t"'
EARLIER, DATE, LATER = (f"Sun, 13 Sep 2020 12:26:{second} GMT" for second in (39, 40, 41))
KNOWN = Validators(TAG, 1_600_000_000)
DATELESS = Validators(TAG, None)


def test_how_a_get_ends(subtests: pytest.Subtests) -> None:
    for headers, status, dateless in [
        ({}, None, None),
        ({"if-match": "*"}, None, None),
        ({"if-match": TAG, "if-unmodified-since": EARLIER}, None, None),
        ({"if-match": 'W/"t"'}, 412, 412),
        ({"if-match": ""}, 412, 412),
        ({"if-unmodified-since": DATE}, None, 412),
        ({"if-unmodified-since": EARLIER}, 412, 412),
        ({"if-unmodified-since": "soon"}, None, None),
        ({"if-none-match": 'W/"t"'}, 304, 304),
        ({"if-none-match": '"a", "t"'}, 304, 304),
        ({"if-none-match": '"a"', "if-modified-since": LATER}, None, None),
        ({"if-modified-since": DATE}, 304, None),
        ({"if-modified-since": LATER}, 304, None),
        ({"if-modified-since": EARLIER}, None, None),
        ({"if-modified-since": "Sun, 99 Sep 9999999 12:26:40 GMT"}, None, None),
        ({"if-match": '"a"', "if-none-match": TAG}, 412, 412),
    ]:
        with subtests.test(headers=headers, status=status, dateless=dateless):
            assert judge(headers, KNOWN) == status
            assert judge(headers, DATELESS) == dateless


@pytest.mark.parametrize("date", ["", ",", "0", "Sun, 06 Nov x 08:49:37 GMT", "x" * 100_000])
def test_what_is_no_date_is_no_condition(date: str) -> None:
    for name in ("if-modified-since", "if-unmodified-since"):
        assert judge({name: date}, KNOWN) is None
    assert not permits_range({"if-range": date}, KNOWN)


def test_a_range_of_this_version_only() -> None:
    for known in (TAG, DATE):
        assert permits_range({"if-range": known}, KNOWN)
    for other in ('W/"t"', '"a"', EARLIER, LATER, "*"):
        assert not permits_range({"if-range": other}, KNOWN)
    assert not permits_range({"if-range": DATE}, DATELESS)
    assert permits_range({}, DATELESS)


def test_weak_tags_are_compared_too() -> None:
    assert names_weakly('"a", W/"t"', 'W/"t"')
    assert names_weakly("*", 'W/"t"')
    assert not names_weakly('"a"', 'W/"t"')
