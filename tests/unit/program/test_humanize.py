"""Numbers formatted for people."""

import pytest

from huai_program.humanize import counted, long_span, short_span


def test_one_is_no_plural_and_thousands_are_separated() -> None:
    texts = {0: "0 files", 1: "1 file", 2: "2 files", 60_301: "60,301 files"}
    assert {number: counted(number, "file") for number in texts} == texts
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(1000, "entry", "entries") == "1,000 entries"


def test_a_span_has_its_two_largest_units(subtests: pytest.Subtests) -> None:
    for seconds, short, long in [
        (0, "0s", "0 seconds"),
        (59, "59s", "59 seconds"),
        (432, "7m12s", "7 minutes 12 seconds"),
        (3600, "1h", "1 hour"),
        (3605, "1h5s", "1 hour 5 seconds"),
        (200_000, "2d7h", "2 days 7 hours"),
    ]:
        with subtests.test(seconds=seconds, short=short, long=long):
            assert (short_span(seconds), long_span(seconds)) == (short, long)
