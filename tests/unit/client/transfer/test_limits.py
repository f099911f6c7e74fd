"""Trickles, queues and shares of bandwidth: the rules, with a clock that the test sets."""

import os
from collections.abc import Callable

import pytest

from huai_client.transfer.limits import (
    Bandwidth,
    BusyBackoff,
    StallDetector,
    answer_seconds,
    bytes_read,
)
from tests.support.clock import Clock


class _WaitsError(Exception):
    """A stream would have to wait."""


def never(_: float) -> None:
    raise _WaitsError


def after(clock: Clock, pace: StallDetector, seconds: float, total: int | None) -> bool:
    """Return True if the pace is lost `seconds` later, with `total` bytes by then."""
    clock.now += seconds
    return pace.stalled(lambda: total)


def test_a_run_has_to_read_enough_in_each_window() -> None:
    clock = Clock(0.0)
    pace = StallDetector(10, 100, clock)
    assert not after(clock, pace, 9, 0)
    assert not after(clock, pace, 1, 1000)
    assert not after(clock, pace, 10, 2000)
    assert after(clock, pace, 10, 2999)


def test_what_is_not_known_is_no_trickle() -> None:
    clock = Clock(0.0)
    pace = StallDetector(10, 100, clock)
    assert not after(clock, pace, 1000, None)


def test_what_a_process_has_read() -> None:
    before = bytes_read(os.getpid())
    with open("/dev/zero", "rb") as zeros:
        zeros.read(100_000)
    now = bytes_read(os.getpid())
    assert before is not None
    assert now is not None
    assert 100_000 <= now - before < 1_000_000
    assert bytes_read(2**22 + 1) is None


def test_a_stream_in_line_asks_ever_more_seldom_until_it_is_let_in() -> None:
    line = BusyBackoff(10**6, 1.0, Clock(0.0))
    pauses = [line.refused(0) or 0.0 for _ in range(12)]
    for number, pause in enumerate(pauses):
        longest = min(30.0, 2.0**number)
        assert 0.5 * longest <= pause <= 1.5 * longest
    assert (line.refused(1) or 0.0) <= 1.5
    line.admitted(0)
    assert (line.refused(0) or 0.0) <= 1.5


def test_patience_ends_only_while_no_stream_gets_anything() -> None:
    clock = Clock(0.0)
    line = BusyBackoff(100.0, 1.0, clock)
    assert line.refused(0) is not None
    clock.now = 99.0
    line.admitted(1)
    clock.now = 150.0
    assert line.refused(0) is not None
    clock.now = 249.9
    left = line.refused(0)
    assert left is not None
    assert left <= 0.2
    clock.now = 250.0
    assert line.refused(0) is None


def test_no_patience_at_all() -> None:
    assert BusyBackoff(0.0, 1.0, Clock(0.0)).refused(0) is None


def test_how_many_stand() -> None:
    line = BusyBackoff(1.0, 1.0)
    with line.counted_as_waiting(), line.counted_as_waiting():
        assert line.waiting == 2
    assert line.waiting == 0


def test_no_limit_is_no_limit() -> None:
    bandwidth = Bandwidth(0, 2)
    with bandwidth.share(0, never) as first, bandwidth.share(0, never) as second:
        assert (first, second) == (0, 0)


def test_the_last_stream_gets_it_all_and_others_wait_for_their_part() -> None:
    bandwidth = Bandwidth(1000, 4)
    with bandwidth.share(0, never) as all_of_it:
        assert all_of_it == 1000
        with pytest.raises(_WaitsError), bandwidth.share(0, never):
            pass
    with bandwidth.share(3, never) as first, bandwidth.share(2, never) as second:
        assert (first, second) == (250, 250)
        with bandwidth.share(1, never) as third, bandwidth.share(0, never) as fourth:
            assert (third, fourth) == (250, 250)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("streams", [1, 2, 3, 64])
def test_the_sum_never_exceeds_the_limit(limit: int, streams: int) -> None:
    bandwidth = Bandwidth(limit, streams)
    shares: list[int] = []

    def hold(rivals: int, then: Callable[[], None]) -> None:
        try:
            with bandwidth.share(rivals, never) as share:
                assert share > 0
                shares.append(share)
                assert sum(shares) <= limit
                then()
                shares.pop()
        except _WaitsError:
            assert shares

    def fill(left: int) -> None:
        if left:
            hold(left - 1, lambda: fill(left - 1))

    for rivals in range(-1, streams + 1):
        hold(rivals, lambda: fill(streams - 1))
    assert shares == []


@pytest.mark.parametrize(("timeout", "seconds"), [(600, 120), (3600, 720), (60, 30), (5, 5)])
def test_the_first_byte_has_less_time(timeout: float, seconds: float) -> None:
    assert answer_seconds(timeout) == seconds
