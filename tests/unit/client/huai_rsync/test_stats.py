"""rsync's numbers and closing lines; the expected ones were copied from rsync 3.5.0."""

import pytest

from huai_client.cli.numbers import format_number, kibibytes
from huai_client.huai_rsync.request import OutputStyle
from huai_client.huai_rsync.stats import Stats


def test_the_limits_of_bandwidth(subtests: pytest.Subtests) -> None:
    for text, value in [
        ("0", 0),
        ("100", 100),
        ("1.5m", 1536),
        ("1MB", 977),
        ("2g", 2 << 20),
        ("1024B", 1),
        ("fast", None),
        ("100B", None),
        ("-1", None),
    ]:
        with subtests.test(text=text, value=value):
            assert kibibytes(text) == value


def test_numbers_as_rsync_shows_them(subtests: pytest.Subtests) -> None:
    for number, human, text in [
        (1234567, 0, "1234567"),
        (1234567, 1, "1,234,567"),
        (1234567, 2, "1.23M"),
        (1234567, 3, "1.18M"),
        (999, 2, "999"),
        (1024, 3, "1.00K"),
        (5 * 10**18, 2, "5000.00P"),
    ]:
        with subtests.test(number=number, human=human, text=text):
            assert format_number(number, human) == text


def test_silence() -> None:
    assert not list(Stats(total=1).lines(OutputStyle(), seconds=0, dry_run=False))
    assert not list(Stats().lines(OutputStyle(stats=True), seconds=0, dry_run=False))
    assert not list(Stats().log_lines(OutputStyle(stats=True), seconds=0, dry_run=False))
