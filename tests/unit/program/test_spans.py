"""Spans of time: what options and configuration files accept is the same."""

import re

import pytest

from huai_program.spans import SPAN, parse, seconds


def test_a_span_is_seconds(subtests: pytest.Subtests) -> None:
    for text, found in [
        ("0", 0),
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("1d", 86400),
        ("1w", 604_800),
    ]:
        with subtests.test(text=text, found=found):
            assert parse(text) == seconds(text) == found


def test_what_is_none_is_refused(subtests: pytest.Subtests) -> None:
    for text in [
        "",
        "s",
        "soon",
        "-1h",
        "1.5h",
        "1 h",
        "1H",
        "1hs",
        "1h\n",
        "٣h",
        "1234567890",
        "1234567890s",
    ]:
        with subtests.test(text=text):
            assert re.search(SPAN.replace("$", r"\Z"), text) is None
            with pytest.raises(ValueError, match="not a duration"):
                parse(text)


@pytest.mark.parametrize("text", ["999999999", "999999999w", "0d"])
def test_what_the_expression_takes_is_parsed(text: str) -> None:
    assert re.search(SPAN, text)
    assert parse(text) >= 0
