"""When the next commit is due."""

import pytest

from huai_server.http.pages.cadence import next_expected

HOUR = 3600


@pytest.mark.parametrize(
    ("times", "due"),
    [
        ((), None),
        ((9, 6, 3), None),
        ((4 * HOUR, 3 * HOUR, 2 * HOUR, HOUR), 5 * HOUR),
        ((90 * HOUR, 3 * HOUR, 2 * HOUR, HOUR), 91 * HOUR),
        ((5, 5, 5, 5, 5), None),
        ((10, 20, 15, 10, 5), 15),
    ],
)
def test_it_is_due_as_long_after_the_newest_as_commits_are_apart(
    times: tuple[int, ...], due: int | None
) -> None:
    assert next_expected(times) == due
