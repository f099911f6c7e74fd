"""The lag of a mirror computed from its attestations, against a computation for each second."""

from random import Random

import pytest

from huai_server.mirrors.judge import Commits
from huai_server.mirrors.lag import (
    DAY_SECONDS,
    DAYS,
    PERCENTILES,
    ROWS_MAX,
    WINDOW_SECONDS,
    LagHistory,
)


def naive(history: LagHistory, now: int, lag: int) -> tuple[int, ...]:
    """Return the percentiles of the lag of each second."""
    lags: list[int] = []
    begin = max(history.begun, now - WINDOW_SECONDS)
    for end, before in (*history.rows, (now, lag)):
        lags += (max(0, before - (end - second)) for second in range(begin + 1, end + 1))
        begin = max(begin, end)
    lags.sort()
    return tuple(lags[-(-len(lags) * each // 100) - 1] for each in PERCENTILES)


def test_percentiles_are_those_of_each_second(subtests: pytest.Subtests) -> None:
    for seed in range(20):
        with subtests.test(seed=seed):
            random = Random(seed)
            commits: dict[int, tuple[str, int]] = {1: ("", 1000)}
            history, serial, now = LagHistory(1000), 1, 1000
            for _ in range(random.randrange(1, 30)):
                now += random.randrange(1, 50)
                if random.random() < 0.5:
                    commits[len(commits) + 1] = ("", now)
                else:
                    history = history.extended(now, Commits("", commits).lag(serial, now))
                    serial = random.choice((serial, len(commits)))
            lag = Commits("", commits).lag(serial, now)
            if now > history.begun:
                assert history.percentiles(now, lag) == naive(history, now, lag)


def test_a_mirror_that_is_always_in_step_has_one_row() -> None:
    history = LagHistory(1000)
    for now in range(1000, 2000, 10):
        history = history.extended(now, 0)
    assert history == LagHistory(1000, ((1990, 0),))
    assert history.percentiles(2000, 0) == (0, 0, 0)
    assert LagHistory(1000).percentiles(1000, 0) == (0, 0, 0)


def test_what_is_old_goes() -> None:
    history = LagHistory(0)
    for now in range(60, WINDOW_SECONDS * 2, WINDOW_SECONDS // 100):
        history = history.extended(now, 5)
    assert history.begun > WINDOW_SECONDS * 0.9
    assert len(history.rows) <= 101
    for now in range(ROWS_MAX + 10):
        history = history.extended(WINDOW_SECONDS * 2 + now, 1)
    assert len(history.rows) == ROWS_MAX


def test_a_commit_that_is_not_kept_counts_as_the_next_one_that_is() -> None:
    commits = Commits("", {7: ("", 700), 8: ("", 800)})
    assert [commits.lag(serial, 1000) for serial in (3, 6, 7, 8, 9)] == [300, 300, 200, 0, 0]
    assert Commits("", {}).lag(3, 1000) == 0


def test_each_day_has_the_most_lag_of_its_seconds(subtests: pytest.Subtests) -> None:
    for seed in range(10):
        with subtests.test(seed=seed):
            random = Random(seed)
            end = 100 * DAY_SECONDS + random.randrange(DAY_SECONDS)
            history = LagHistory(end - random.randrange(1, 40 * DAY_SECONDS))
            while (next_end := history.end + random.randrange(1, 5 * DAY_SECONDS)) < end:
                gap = next_end - history.end
                history = history.extended(next_end, random.choice((0, random.randrange(2 * gap))))
            lag = random.randrange(3 * DAY_SECONDS)
            most: dict[int, int] = {}
            begin = history.begun
            for at, before in (*history.rows, (end, lag)):
                for second in {begin, at, *range(0, at, DAY_SECONDS // 4)}:
                    if begin <= second <= at:
                        # The last second of a day and the first of the next are the same moment.
                        for day in {second // DAY_SECONDS, max(begin, second - 1) // DAY_SECONDS}:
                            peak = max(0, before - (at - second))
                            most[day] = max(most.get(day, 0), peak)
                begin = at
            first = end // DAY_SECONDS - DAYS + 1
            days = [most.get(first + place) for place in range(DAYS)]
            assert [*history.days(end, lag)] == days


def test_a_clock_that_was_set_back_makes_no_day() -> None:
    now = 100 * DAY_SECONDS
    history = LagHistory(now - 5, ((now + 3 * DAY_SECONDS, 7),))
    assert len(history.days(now, 0)) == DAYS
    assert LagHistory(now + 3 * DAY_SECONDS).days(now, 0) == (None,) * DAYS


def test_a_commit_arrived_with_the_sync_that_took_it(subtests: pytest.Subtests) -> None:
    """Commits of 100, 200 and 300; syncs that took them at 150, 200 (at once), and not yet."""
    history = LagHistory(50, ((150, 50), (210, 10)))
    for time, arrival in [(40, None), (100, 150), (200, 210), (300, None)]:
        with subtests.test(time=time):
            assert history.arrival(time, 350, 50) == arrival
    partial = LagHistory(0, ((150, 50), (400, 200)))
    assert partial.arrival(200, 500, 0) == 400, "the sync of 150 had no commit of 200"
    assert partial.arrival(120, 500, 0) == 150
    assert LagHistory(0).arrival(10, 20, 10) is None
