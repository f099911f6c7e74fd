"""Options and configuration files accept the same durations."""

import pytest

from huai_program.durations import Duration, TimeLimit, parse, seconds


def test_a_duration_is_seconds(subtests: pytest.Subtests) -> None:
    durations = {"0": 0, "90s": 90, "30m": 1800, "2h": 7200, "1d": 86400, "1w": 604_800}
    for text, expected in durations.items():
        with subtests.test(text=text, found=expected):
            assert parse(text) == seconds(text) == expected


def test_what_is_none_is_refused(subtests: pytest.Subtests) -> None:
    for text in (
        *("", "s", "soon", "-1h", "1.5h", "1 h", "1H", "1hs", "1h\n", "٣h"),
        *("1234567890", "1234567890s"),
    ):
        with subtests.test(text=text):
            with pytest.raises(ValueError, match="not a duration"):
                parse(text)


def test_a_value_of_a_configuration_file(subtests: pytest.Subtests) -> None:
    for value, text in [(90, "90"), ("0", "0"), ("2d", "2d"), ("999999999w", "999999999w")]:
        with subtests.test(value=value):
            assert Duration.parse(value) == text
    for wrong in (1.5, True, None, "", "forever"):
        with subtests.test(wrong=wrong):
            with pytest.raises(ValueError, match=r"is not a duration \("):
                Duration.parse(wrong)
    for zero in (0, "0", "0d"):
        with subtests.test(zero=zero):
            with pytest.raises(ValueError, match="is not a duration above 0"):
                TimeLimit.parse(zero)
