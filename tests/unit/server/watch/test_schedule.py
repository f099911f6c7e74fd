"""The times at which a watcher commits."""

import pytest

from huai_server.watch.schedule import Schedule


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(delay=5, at_most=60)


def test_nothing_is_due_where_nothing_happened(schedule: Schedule) -> None:
    assert schedule.due() is None


def test_it_waits_for_a_quiet_time(schedule: Schedule) -> None:
    schedule.add_events(100, 2)
    assert schedule.due() == 105
    schedule.add_events(104, 3)
    assert schedule.due() == 109
    assert (schedule.changes, schedule.since) == (5, 100)


def test_but_no_longer_than_a_change_may_wait(schedule: Schedule) -> None:
    for now in range(100, 160):
        schedule.add_events(now, 1)
    assert schedule.due() == 160


def test_what_is_seen_during_a_commit_is_of_the_next(schedule: Schedule) -> None:
    schedule.add_events(100, 1)
    schedule.begin_commit()
    assert schedule.due() is None
    schedule.add_events(110, 1)
    assert (schedule.due(), schedule.since) == (115, 110)


def test_a_commit_that_failed_is_tried_again_and_the_changes_stay_old(schedule: Schedule) -> None:
    schedule.add_events(100, 1)
    schedule.begin_commit()
    schedule.restore(107)
    assert (schedule.due(), schedule.since) == (167, 100)
    schedule.add_events(120, 1)
    assert (schedule.due(), schedule.since) == (125, 100)


def test_a_commit_without_changes_that_failed(schedule: Schedule) -> None:
    schedule.commit_now(0)
    schedule.begin_commit()
    schedule.restore(50)
    assert (schedule.due(), schedule.since) == (110, None)


def test_at_once(schedule: Schedule) -> None:
    schedule.commit_now(100)
    due = schedule.due()
    assert due is not None
    assert due <= 100
    assert schedule.since is None


def test_later_puts_nothing_off(schedule: Schedule) -> None:
    schedule.commit_later(100)
    assert schedule.due() == 160
    schedule.commit_later(110)
    assert schedule.due() == 160
    schedule.add_events(120, 1)
    assert schedule.due() == 125
