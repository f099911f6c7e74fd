"""Delayed deletions: pure decisions, and their record."""

from pathlib import Path

import pytest

from huai_client.diff.candidate import Move, Remove
from huai_client.plan import pending
from huai_client.plan.operations import Plan
from huai_client.plan.pending import DelayPolicy, delay_deletions
from huai_client.state import delayed_record
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_client.state.state import StateError
from huai_client.sync.follow import Following
from huai_schema.paths import RelPath
from tests.support.local_trees import at


def removals(*paths: bytes, moves: tuple[Move, ...] = ()) -> Plan:
    return Plan([], [], list(moves), [], [Remove(at(path), directory=False) for path in paths], [])


def rules(now: int = 100, delay: int = 10, names: tuple[bytes, ...] = ()) -> DelayPolicy:
    return DelayPolicy(now, delay, lambda item: item.path == b"pointer", lambda path: path in names)


def file(path: bytes, since: int = 0) -> DelayedDeletion:
    return DelayedDeletion(at(path), directory=False, since=since)


def test_without_delay_nothing_waits() -> None:
    delayed = delay_deletions(removals(b"a", b"pointer"), [file(b"b", 100)], rules(delay=0))
    assert [item.path for item in delayed.plan.removals] == [b"pointer", b"b", b"a"]
    assert (delayed.pending, delayed.delayed) == ([], 0)


def test_a_second_run_does_not_wait_anew() -> None:
    """An interrupted run that had recorded delayed deletions plans the same again."""
    delayed = delay_deletions(removals(b"a"), [file(b"a", 95)], rules())
    assert delayed.pending == [file(b"a", 95)]
    assert delayed.delayed == 0


def test_it_is_due_to_the_second() -> None:
    assert delay_deletions(removals(), [file(b"a", 91)], rules()).pending == [file(b"a", 91)]
    assert delay_deletions(removals(), [file(b"a", 90)], rules()).pending == []


def test_what_the_snapshot_names_is_left_alone() -> None:
    delayed = delay_deletions(removals(), [file(b"a", 1), file(b"b", 1)], rules(names=(b"a",)))
    assert [item.path for item in delayed.plan.removals] == [b"b"]


def test_a_directory_waits_for_what_is_in_it() -> None:
    folder = DelayedDeletion(at(b"d"), directory=True, since=1)
    delayed = delay_deletions(removals(), [folder, file(b"d/old", 1), file(b"d/new", 95)], rules())
    assert [item.path for item in delayed.plan.removals] == [b"d/old"]
    assert delayed.pending == [folder, file(b"d/new", 95)]


def test_the_oldest_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "MOST", 2)
    delayed = delay_deletions(
        removals(b"new"), [file(b"a", 92), file(b"b", 91), file(b"c", 93)], rules()
    )
    assert {each.path for each in delayed.pending} == {b"new", b"c"}
    assert {item.path for item in delayed.plan.removals} == {b"a", b"b"}


def test_where_a_directory_went(subtests: pytest.Subtests) -> None:
    for old, new, target in [
        (b"a", b"b", b"b"),
        (b"x/a", b"b", b"../b"),
        (b"a", b"x/b", b"x/b"),
        (b"x/y/a", b"x/z/b", b"../z/b"),
        (b"x/a", b"x/b/c", b"b/c"),
        (b"a/b", b"a", b"../a"),
    ]:
        with subtests.test(old=old, new=new, target=target):
            delayed = delay_deletions(removals(moves=(Move(at(old), at(new)),)), [], rules())
            assert delayed.plan.forwards[RelPath(old)].target == target
            assert delayed.pending == [file(old)]
            assert (
                delay_deletions(
                    removals(moves=(Move(at(old), at(new)),)), [], rules(names=(old,))
                ).pending
                == []
            )


def test_the_record_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "delayed"
    assert (delayed_record.load(path), delayed_record.head(path)) == (
        [],
        delayed_record.DelayedHeader(0, 0),
    )
    delayed_record.save(path, [], now=5)
    assert not path.exists()
    odd = DelayedDeletion(at(b"a\n\t\\\xff"), directory=True, since=3)
    delayed_record.save(path, [odd, file(b"b")], now=5)
    assert delayed_record.load(path) == [odd, file(b"b", 5)]
    head = delayed_record.head(path)
    assert (head.paths, head.since) == (2, 3)
    assert head.due(10, 13)
    assert not head.due(10, 12)
    delayed_record.save(path, [], now=5)
    assert not delayed_record.head(path).due(0, 100)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"huai-delayed 2 0 0\n",
        b"huai-delayed 1 1 5\n",
        b"huai-delayed 1 1 5\n5\tf\ta",
        b"huai-delayed 1 1 5\n5\tx\ta\n",
        b"huai-delayed 1 1 5\n5\tf\t../a\n",
        b"huai-delayed 1 1 5\n5\tf\t/etc/passwd\n",
        b"huai-delayed 1 1 5\n5\tf\t\\x41\n",
    ],
)
def test_a_record_that_nobody_wrote(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "delayed"
    path.write_bytes(text)
    with pytest.raises(StateError, match="not a record of this program"):
        delayed_record.load(path)


def test_a_run_follows_as_long_as_it_gets_closer() -> None:
    following = Following(lambda _: None)
    assert all(following.has_moved_on(missing, lambda: True) for missing in range(100, 0, -1))
    assert sum(following.has_moved_on(1, lambda: True) for _ in range(50)) == 9


def test_a_next_commit_is_waited_for_only_if_there_was_one() -> None:
    pauses: list[float] = []
    following = Following(pauses.append)
    assert not following.has_moved_on(3, lambda: False)
    assert pauses == []
    following = Following(pauses.append)
    assert following.has_moved_on(3, lambda: True)
    answers = iter([False, False, True])
    assert following.has_moved_on(2, lambda: next(answers))
    assert pauses == [0.5, 0.5]
    assert not following.has_moved_on(1, lambda: False)
    assert sum(pauses) == 16.0


def test_a_run_follows_for_five_minutes_after_its_first_plan_was_carried_out() -> None:
    now = [0.0]
    waits: list[float] = []
    following = Following(lambda _: None, clock=lambda: now[0])

    def newer() -> bool:
        waits.append(now[0])
        return True

    for now[0], missing, goes_on in ((7200.0, 9, True), (7499.9, 8, True), (7500.0, 7, False)):
        assert following.has_moved_on(missing, newer) is goes_on
    assert waits == [7200.0, 7499.9]
    assert following.plans == 3
