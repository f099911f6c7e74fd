"""The record of the applied commit: one spelling, and any other bytes are refused."""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_schema.codec.applied import BYTES_MAX, AppliedRecord
from huai_schema.errors import FormatError

COMMIT = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
PAGE = (Path(__file__).parents[4] / "docs" / "MIRRORS.md").read_text(encoding="utf-8")


def test_the_page_shows_one() -> None:
    (block,) = re.findall(r"```\n(huai-applied.*?)```", PAGE, re.DOTALL)
    assert AppliedRecord(COMMIT, "").encode() == block.encode()
    assert AppliedRecord.decode(block.encode()) == (COMMIT, "")


@given(st.text(st.characters(codec="utf-8"), max_size=1000))
def test_what_was_written_is_read(left_out: str) -> None:
    data = AppliedRecord(COMMIT, left_out).encode()
    assert len(data) <= BYTES_MAX
    assert AppliedRecord.decode(data) == (COMMIT, left_out)


def test_a_long_reason_is_cut() -> None:
    assert AppliedRecord.decode(AppliedRecord(COMMIT, "x" * 1001).encode()).left_out == "x" * 1000


def test_other_bytes_are_refused(subtests: pytest.Subtests) -> None:
    for good, bad in [
        ("applied 1", "applied 2"),
        (COMMIT, COMMIT[1:]),
        (COMMIT, COMMIT.upper()),
        ("all\n", "all"),
        ("all\n", "all\n\n"),
        ("all", "part "),
        ("all", "part \\x41"),
        ("all", "part \\"),
        ("all", "most"),
        ("all", "all because"),
    ]:
        with subtests.test(good=good, bad=bad):
            text = AppliedRecord(COMMIT, "").encode().decode()
            with pytest.raises(FormatError):
                AppliedRecord.decode(text.replace(good, bad).encode())


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_our_error(data: bytes) -> None:
    with suppress(FormatError):
        assert AppliedRecord.decode(data).encode() == data
