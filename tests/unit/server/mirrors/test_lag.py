"""The lag of a mirror computed from its attestations, against a computation for each second."""

from random import Random

import pytest

from huai_server.mirrors.judge import Commits
from huai_server.mirrors.lag import PERCENTILES, ROWS_MAX, WINDOW_SECONDS, LagHistory


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
