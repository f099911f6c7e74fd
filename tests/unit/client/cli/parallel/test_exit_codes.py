from itertools import pairwise

import pytest

from huai_client.cli.parallel.exit_codes import gravest
from huai_schema.errors import ExitCode

MILD = [0, 24, 43, 30, 10, 23]
"""As OPERATING.md and the help text of `sync` name them."""


def test_nothing_went_wrong_where_there_was_nothing() -> None:
    assert gravest([]) == 0
    assert gravest([0, 0]) == 0


@pytest.mark.parametrize(("lighter", "graver"), list(pairwise(MILD)))
def test_what_mends_itself_has_an_order(lighter: int, graver: int) -> None:
    assert gravest([lighter, graver]) == gravest([graver, lighter]) == graver


@pytest.mark.parametrize("code", sorted({*map(int, ExitCode), 137} - {*MILD}))
def test_all_else_is_graver_and_the_first_of_it_counts(code: int) -> None:
    for mild in MILD:
        assert gravest([mild, code, mild]) == code
    assert gravest([code, 52]) == code
    assert gravest([52, code]) == 52
