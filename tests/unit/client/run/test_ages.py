"""The age at which a commit is too old."""

import pytest

from huai_client.run.ages import clock_warning, why_too_old

NOW = 1_700_000_000.5
DAY = 86400


@pytest.mark.parametrize(
    ("age", "max_age"), [(DAY, "1d"), (DAY * 900, "0"), (0, "1s"), (-5 * DAY, "1m"), (59, "1m")]
)
def test_young_enough(age: int, max_age: str) -> None:
    assert why_too_old(int(NOW) - age, max_age, NOW) == ""


def test_what_is_not_known_is_not_too_old() -> None:
    assert why_too_old(0, "1s", NOW) == ""


@pytest.mark.parametrize(
    ("age", "max_age", "text"),
    [
        (DAY + 1, "1d", "1 day 1 second"),
        (DAY + 7200, "24h", "1 day 2 hours"),
        (5 * DAY + 61, "90", "5 days 1 minute"),
        (61, "1m", "1 minute 1 second"),
    ],
)
def test_too_old(age: int, max_age: str, text: str) -> None:
    reason = why_too_old(int(NOW) - age, max_age, NOW)
    assert f"is {text} old" in reason
    assert f'max_age = "{max_age}"' in reason


def test_a_commit_dated_ahead_ages_from_when_it_was_first_seen() -> None:
    ahead, now = int(NOW) + 900 * DAY, int(NOW)
    assert why_too_old(ahead, "1d", NOW, first_seen=now - DAY) == ""
    assert "at least 2 days old" in why_too_old(ahead, "1d", NOW, first_seen=now - 2 * DAY)
    # One whose date is not known likewise; an old one is as old as it says.
    assert "at least 2 days old" in why_too_old(0, "1d", NOW, first_seen=now - 2 * DAY)
    assert "is 5 days old" in why_too_old(now - 5 * DAY, "1d", NOW, first_seen=now)


def test_a_date_is_ahead_by_more_than_clocks_differ() -> None:
    assert clock_warning(int(NOW) + 3600, NOW) == ""
    assert clock_warning(int(NOW) - 900 * DAY, NOW) == ""
    assert "dated 1 hour 1 second ahead" in clock_warning(int(NOW) + 3601, NOW)
