"""The exit code of several modules, on both sides."""

from itertools import pairwise

import pytest

from huai_schema.errors import ExitCode, worst_exit_code

MILD = [0, 41, 24, 43, 30, 10, 23]
"""The codes in DOWNSTREAM.md, and in the help text of `sync` without 41, which is of a commit."""


def test_nothing_went_wrong_where_there_was_nothing() -> None:
    assert worst_exit_code([]) == 0
    assert worst_exit_code([0, 0]) == 0


def test_what_mends_itself_has_an_order(subtests: pytest.Subtests) -> None:
    for lighter, worse in list(pairwise(MILD)):
        with subtests.test(lighter=lighter, worse=worse):
            assert worst_exit_code([lighter, worse]) == worst_exit_code([worse, lighter]) == worse


def test_all_else_is_worse_and_the_first_of_it_counts(subtests: pytest.Subtests) -> None:
    for code in sorted({*map(int, ExitCode), 137} - {*MILD}):
        with subtests.test(code=code):
            for mild in MILD:
                assert worst_exit_code([mild, code, mild]) == code
            assert worst_exit_code([code, 52]) == code
            assert worst_exit_code([52, code]) == 52
