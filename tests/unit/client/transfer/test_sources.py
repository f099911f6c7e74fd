"""The next content URLs, after the results of the others."""

import pytest

from huai_client.state.upstreams import UpstreamHealth
from huai_client.transfer.errors import (
    ConnectionBrokenError,
    TransferError,
    UpstreamFullError,
    UpstreamRefusedError,
    WrongContentError,
)
from huai_client.transfer.sources import Pace, Sources
from huai_client.transfer.urls import ContentUrl

A, B, C, D = (ContentUrl.parse(f"https://{name}/m") for name in "abcd")


@pytest.mark.parametrize(
    ("failure", "order", "again", "remembered"),
    [
        (ConnectionBrokenError("x"), [B, A], True, ["https://a"]),
        (UpstreamFullError("x"), [B, A], False, []),
        (UpstreamRefusedError("x"), [B], True, ["https://a/m/"]),
        (WrongContentError("x"), [B], True, ["https://a/m/"]),
    ],
)
def test_what_follows_a_failure(
    failure: TransferError, order: list[ContentUrl], again: bool, remembered: list[str]
) -> None:
    health = UpstreamHealth(None)
    sources = Sources([A, B], health)
    assert sources.failed(A, failure) is again
    assert sources.usable() == order
    assert [each.service for each in health.failing()] == remembered
    sources.answered(A)
    assert health.failing() == []


def test_the_last_one_is_asked_on_though_it_has_wrong_content() -> None:
    sources = Sources([A, B], UpstreamHealth(None))
    sources.failed(A, WrongContentError("x"))
    sources.failed(B, WrongContentError("x"))
    assert sources.usable() == [B]


def test_when_all_have_refused_the_last_one_says_why() -> None:
    sources = Sources([A, B], UpstreamHealth(None))
    sources.failed(A, UpstreamRefusedError("a"))
    sources.failed(B, UpstreamRefusedError("b"))
    with pytest.raises(UpstreamRefusedError, match="b"):
        sources.usable()


def test_who_failed_lately_is_asked_last() -> None:
    health = UpstreamHealth(None)
    health.failed("https://a", "down")
    assert Sources([A, B], health).usable() == [B, A]


def test_the_lowest_priority_comes_first_but_for_who_failed_lately() -> None:
    health = UpstreamHealth(None)
    late, early = A._replace(priority=2), B._replace(priority=1)
    assert Sources([late, early], health).usable() == [early, late]
    health.failed(B.service, "no")
    assert Sources([late, early], health).usable() == [late, early]


def test_shares_are_taken_by_turns() -> None:
    much, little = A._replace(share=3), B._replace(share=1)
    nothing, later = C, D._replace(priority=2, share=9)
    sources = Sources([little, nothing, later, much], UpstreamHealth(None))
    turns = [sources.turn(10) for _ in range(8)]
    assert [each[0] for each in turns].count(much) == 6
    assert [each[0] for each in turns].count(little) == 2
    assert all({*each} == {much, little, nothing, later} for each in turns)
    assert all(each[-1] == later for each in turns)
    assert sources.divides
    assert not Sources([A, B], UpstreamHealth(None)).divides


def test_without_shares_the_order_stays() -> None:
    sources = Sources([B, A], UpstreamHealth(None))
    assert [sources.turn(10) for _ in range(3)] == [[B, A]] * 3


def test_one_that_drips_is_left_once_for_one_that_is_not_known() -> None:
    sources = Sources([A, B], UpstreamHealth(None))
    assert not sources.leave(A, 100_000)
    assert sources.leave(A, 300)
    sources.measured(A, 3000, 10)
    assert not sources.leave(B, 200)
    sources.measured(B, 2000, 10)
    assert not sources.leave(A, 300)


def test_one_is_left_for_another_that_has_given_four_times_as_much() -> None:
    sources = Sources([A, B], UpstreamHealth(None))
    sources.measured(B, 50_000_000, 10)
    assert sources.leave(A, 1_000_000)
    assert not sources.leave(A, 2_000_000)
    sources.measured(B, 10, 0.1)  # not a measurement
    assert sources.leave(A, 1_000_000)


def test_the_only_one_is_never_left() -> None:
    assert not Sources([A], UpstreamHealth(None)).leave(A, 0)


@pytest.mark.parametrize(
    ("size", "moved", "bwlimit", "slow"),
    [
        (10_000_000, 3000, 0, True),
        (10_000, 3000, 0, False),  # it ends soon
        (10_000_000, 300_000, 11, False),  # because of our own limit
        (10_000_000, 3_000_000, 0, False),
        (10_000_000, None, 0, False),
    ],
)
def test_the_rate_of_an_attempt(size: int, moved: int | None, bwlimit: int, *, slow: bool) -> None:
    now = [0.0]
    pace = Pace(Sources([A, B], UpstreamHealth(None)), A, size, 10, lambda: now[0])
    assert not pace.is_too_slow(0, lambda: 0, bwlimit)
    now[0] = 10
    assert pace.is_too_slow(moved or 0, lambda: moved, bwlimit) is slow
