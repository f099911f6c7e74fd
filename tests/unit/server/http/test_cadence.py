"""The due time of the next commit, and its words on a page."""

import pytest
from fastapi import Request

from huai_server.http.pages.rendering import Page
from huai_server.http.pages.status import next_expected

HOUR, DAY = 3600, 86400
NOW = 1_700_000_000


def test_it_is_due_as_long_after_the_newest_as_commits_are_apart(subtests: pytest.Subtests) -> None:
    for times, due in [
        ((), None),
        ((9, 6, 3), None),
        ((4 * HOUR, 3 * HOUR, 2 * HOUR, HOUR), 5 * HOUR),
        ((90 * HOUR, 3 * HOUR, 2 * HOUR, HOUR), 91 * HOUR),
        ((5, 5, 5, 5, 5), None),
        ((10, 20, 15, 10, 5), 15),
    ]:
        with subtests.test(times=times, due=due):
            assert next_expected(times) == due


@pytest.mark.parametrize(
    ("left", "overdue", "english", "chinese"),
    [
        (240, False, "next in 4 min", "预计 4 min 后有下次提交"),
        (61, False, "next in 1 min", "预计 1 min 后有下次提交"),
        (59, False, "next about now", "下次提交即将到来"),
        (-59, False, "next about now", "下次提交即将到来"),
        (-60, True, "overdue by 1 min", "已逾期 1 min"),
        (-180, True, "overdue by 3 min", "已逾期 3 min"),
        (-5 * HOUR, True, "overdue by 5 h", "已逾期 5 h"),
        (3 * DAY, False, "next in 3 d", "预计 3 d 后有下次提交"),
    ],
)
def test_a_page_says_how_far_the_next_commit_is_from_now(
    left: int, overdue: bool, english: str, chinese: str
) -> None:
    for language, text in (("en", english), ("zh", chinese)):
        scope = {
            "type": "http",
            "query_string": f"lang={language}".encode(),
            "headers": [],
            "raw_path": b"/",
        }
        assert Page(Request(scope), clock=lambda: NOW).until(NOW + left) == (overdue, text)
