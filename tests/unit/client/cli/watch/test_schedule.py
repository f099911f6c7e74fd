"""When which module is synced, by a clock that stands still."""

from huai_client.cli.watch.schedule import FIRST_PAUSE, Rhythm, Schedule
from huai_client.cli.watch.watch import listener_pause

RHYTHM = Rhythm(spread=30, poll=600, look=3600)


def latest(_: float, most: float) -> float:
    """As chance at its worst."""
    return most


def schedule(*names: str) -> Schedule:
    made = Schedule(latest)
    made.take(dict.fromkeys(names, RHYTHM), 0)
    return made


def test_all_are_due_when_it_begins_and_polled_from_then_on() -> None:
    made = schedule("one", "two")
    assert (made.due(29), made.due(30)) == ([], ["one", "two"])
    made.began("one")
    assert made.due(30) == ["two"]
    assert made.ended("one", 31, failed=False) == 750
    assert (made.next_due(), made.due(31)) == (30, ["two"])
    made.began("two")
    made.ended("two", 40, failed=False)
    assert made.next_due() == 31 + 750


def test_what_was_told_is_due_within_the_spread() -> None:
    made = schedule("one")
    made.began("one")
    made.ended("one", 0, failed=False)
    made.told("one", 100)
    made.told("one", 120)
    assert (made.due(129), made.due(130)) == ([], ["one"])
    made.told("stranger", 100)


def test_who_is_told_of_is_looked_at_less_often() -> None:
    made = schedule("one", "two")
    made.hear(["one", "stranger"], 0, heard=True)
    for name in ("one", "two"):
        made.began(name)
        made.ended(name, 0, failed=False)
    assert (made.due(4499), made.due(4500)) == (["two"], ["two", "one"])
    assert made.unheard == 1
    made.hear(["one"], 100, heard=False)
    assert (made.unheard, made.due(700)) == (2, ["one"])


def test_pauses_double_and_a_newer_commit_ends_them() -> None:
    made = Schedule(latest)
    made.take({"one": RHYTHM._replace(spread=1)}, 0)
    pauses = []
    for _ in range(12):
        made.began("one")
        pauses.append(made.ended("one", 0, failed=True))
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-2:] == [1800, 1800]
    made.told("one", 0, newer=False)
    assert made.next_due() == FIRST_PAUSE
    made.told("one", 0)
    assert made.next_due() == 1
    made.began("one")
    made.ended("one", 0, failed=False)
    made.began("one")
    assert made.ended("one", 0, failed=True) == FIRST_PAUSE


def test_what_another_run_has_in_its_hands_is_no_failure() -> None:
    made = schedule("one")
    made.began("one")
    assert made.ended("one", 0, failed=True, locked=True) == 60
    made.began("one")
    assert made.ended("one", 0, failed=True) == FIRST_PAUSE


def test_modules_come_and_go() -> None:
    made = schedule("one", "two")
    made.began("one")
    made.take({"three": RHYTHM._replace(spread=1), "two": RHYTHM._replace(poll=10)}, 5)
    assert made.ended("one", 6, failed=True) == 0
    assert (made.due(6), made.due(18), made.size) == (["three"], ["three", "two"], 2)


def test_a_listener_that_crashes_again_and_again_rests() -> None:
    assert [listener_pause(crashes) for crashes in range(8)] == [0, 2, 4, 8, 16, 30, 30, 30]
