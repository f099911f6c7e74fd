"""Numbers of things, for people."""

import pytest

from huai_schema.program.humanize import counted


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 files"), (1, "1 file"), (2, "2 files"), (60_301, "60,301 files")],
)
def test_one_is_no_plural_and_thousands_are_separated(number: int, text: str) -> None:
    assert counted(number, "file") == text


def test_a_plural_of_its_own() -> None:
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(1000, "entry", "entries") == "1,000 entries"
