"""The times at which modules are synced, with a fixed clock."""

from huai_client.cli.watch.schedule import FIRST_PAUSE, Rhythm, SyncSchedule
from huai_client.cli.watch.watch import listener_pause

RHYTHM = Rhythm(spread=30, poll=600, poll_with_events=3600)


def latest(_: float, most: float) -> float:
    """Draw the worst number."""
    return most


def make_schedule(*names: str) -> SyncSchedule:
    schedule = SyncSchedule(latest)
    schedule.set_modules(dict.fromkeys(names, RHYTHM), 0)
    return schedule


def test_all_are_due_when_it_begins_and_polled_from_then_on() -> None:
    schedule = make_schedule("one", "two")
    assert (schedule.due(29), schedule.due(30)) == ([], ["one", "two"])
    schedule.began("one")
    assert schedule.due(30) == ["two"]
    assert schedule.ended("one", 31, failed=False) == 750
    assert (schedule.next_due(), schedule.due(31)) == (30, ["two"])
    schedule.began("two")
    schedule.ended("two", 40, failed=False)
    assert schedule.next_due() == 31 + 750


def test_what_was_told_is_due_within_the_spread() -> None:
    schedule = make_schedule("one")
    schedule.began("one")
    schedule.ended("one", 0, failed=False)
    schedule.announce("one", 100)
    schedule.announce("one", 120)
    assert (schedule.due(129), schedule.due(130)) == ([], ["one"])
    schedule.announce("stranger", 100)


def test_who_is_told_of_is_looked_at_less_often() -> None:
    schedule = make_schedule("one", "two")
    schedule.set_events(["one", "stranger"], 0, has_events=True)
    for name in ("one", "two"):
        schedule.began(name)
        schedule.ended(name, 0, failed=False)
    assert (schedule.due(4499), schedule.due(4500)) == (["two"], ["two", "one"])
    assert schedule.polled == 1
    schedule.set_events(["one"], 100, has_events=False)
    assert (schedule.polled, schedule.due(700)) == (2, ["one"])


def test_pauses_double_and_a_newer_commit_ends_them() -> None:
    schedule = SyncSchedule(latest)
    schedule.set_modules({"one": RHYTHM._replace(spread=1)}, 0)
    pauses = []
    for _ in range(12):
        schedule.began("one")
        pauses.append(schedule.ended("one", 0, failed=True))
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-2:] == [1800, 1800]
    schedule.announce("one", 0, newer=False)
    assert schedule.next_due() == FIRST_PAUSE
    schedule.announce("one", 0)
    assert schedule.next_due() == 1
    schedule.began("one")
    schedule.ended("one", 0, failed=False)
    schedule.began("one")
    assert schedule.ended("one", 0, failed=True) == FIRST_PAUSE


def test_what_another_run_has_in_its_hands_is_no_failure() -> None:
    schedule = make_schedule("one")
    schedule.began("one")
    assert schedule.ended("one", 0, failed=True, locked=True) == 60
    schedule.began("one")
    assert schedule.ended("one", 0, failed=True) == FIRST_PAUSE


def test_modules_come_and_go() -> None:
    schedule = make_schedule("one", "two")
    schedule.began("one")
    schedule.set_modules({"three": RHYTHM._replace(spread=1), "two": RHYTHM._replace(poll=10)}, 5)
    assert schedule.ended("one", 6, failed=True) == 0
    assert (schedule.due(6), schedule.due(18), schedule.size) == (["three"], ["three", "two"], 2)


def test_a_listener_that_crashes_again_and_again_rests() -> None:
    assert [listener_pause(crashes) for crashes in range(8)] == [0, 2, 4, 8, 16, 30, 30, 30]
