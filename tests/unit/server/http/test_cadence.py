"""The state of a module, the due time of its next commit, and its words on a page."""

import pytest
from fastapi import Request

from huai_schema.codec.commits import CommitInfo, Counts, Totals
from huai_server.http.pages.rendering import Page
from huai_server.http.pages.state import Due, State, next_due, state_of
from huai_server.store.repository import Head

HOUR, DAY = 3600, 86400
NOW = 1_700_000_000


def test_it_is_due_as_long_after_the_newest_as_commits_are_apart(subtests: pytest.Subtests) -> None:
    for times, due in [
        ((), None),
        ((9, 6, 3), None),
        ((4 * HOUR, 3 * HOUR, 2 * HOUR, HOUR), Due(5 * HOUR, 5 * HOUR)),
        ((90 * HOUR, 3 * HOUR, 2 * HOUR, HOUR), Due(91 * HOUR, 177 * HOUR)),
        ((5, 5, 5, 5, 5), None),
        ((10, 20, 15, 10, 5), Due(15, 15)),
    ]:
        with subtests.test(times=times, due=due):
            assert next_due(times) == due


@pytest.mark.parametrize(
    ("left", "overdue", "english", "chinese"),
    [
        (240, False, "next in 4 min", "预计 4 min 后有下次提交"),
        (61, False, "next in 1 min", "预计 1 min 后有下次提交"),
        (59, False, "next about now", "下次提交即将到来"),
        (-659, False, "next about now", "下次提交即将到来"),
        (-660, True, "overdue by 11 min", "已逾期 11 min"),
        (-5 * HOUR, True, "overdue by 5 h", "已逾期 5 h"),
        (3 * DAY, False, "next in 3 d", "预计 3 d 后有下次提交"),
    ],
)
def test_a_page_says_how_far_the_next_commit_is_from_now(
    left: int, overdue: bool, english: str, chinese: str
) -> None:
    due = Due(NOW + left, NOW + left + 600)
    for language, text in (("en", english), ("zh", chinese)):
        scope = {
            "type": "http",
            "query_string": f"lang={language}".encode(),
            "headers": [],
            "raw_path": b"/",
        }
        assert Page(Request(scope), clock=lambda: NOW).until(due) == (overdue, text)


def test_the_worst_state_counts(subtests: pytest.Subtests) -> None:
    info = CommitInfo("m", 2, Totals(), Counts())
    signed = Head("", "", NOW - 75, info, NOW + 25)
    due = Due(NOW - 100, NOW - 60)
    for head, due_, damaged, at, state in [
        (None, None, 0, NOW, State.EMPTY),
        (signed, None, 0, NOW - 1, State.FRESH),
        (signed, due, 0, NOW - 1, State.FRESH),
        (signed._replace(valid_until=0), due, 0, NOW, State.OVERDUE),
        (signed, due, 0, NOW, State.EXPIRING),
        (signed, due, 0, NOW + 25, State.EXPIRED),
        (signed, due, 1, NOW + 25, State.DAMAGED),
    ]:
        with subtests.test(state=state):
            assert state_of(head, due_, damaged, at) is state
