from itertools import pairwise

import pytest

from huai_client.cli.parallel.run_all import worst_exit_code
from huai_schema.errors import ExitCode

MILD = [0, 24, 43, 30, 10, 23]
"""As OPERATING.md and the help text of `sync` name them."""


def test_nothing_went_wrong_where_there_was_nothing() -> None:
    assert worst_exit_code([]) == 0
    assert worst_exit_code([0, 0]) == 0


@pytest.mark.parametrize(("lighter", "worse"), list(pairwise(MILD)))
def test_what_mends_itself_has_an_order(lighter: int, worse: int) -> None:
    assert worst_exit_code([lighter, worse]) == worst_exit_code([worse, lighter]) == worse


@pytest.mark.parametrize("code", sorted({*map(int, ExitCode), 137} - {*MILD}))
def test_all_else_is_worse_and_the_first_of_it_counts(code: int) -> None:
    for mild in MILD:
        assert worst_exit_code([mild, code, mild]) == code
    assert worst_exit_code([code, 52]) == code
    assert worst_exit_code([52, code]) == 52
