"""The choice of the packs that become one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_server.store.maintain import roll_up

COUNTS = st.lists(st.integers(1, 10**6), max_size=60).map(sorted)


def test_examples(subtests: pytest.Subtests) -> None:
    for counts, merged in [
        ([], 0),
        ([7], 0),
        ([1, 2, 4, 8], 0),
        ([1, 1], 2),
        ([1, 1, 1000], 2),
        ([3, 3, 3, 100], 3),
        ([3, 3, 3, 10], 4),
        ([5, 5, 10, 40, 500], 3),
        ([1, 8, 9, 100], 3),
        ([260] * 60 + [2600], 61),
    ]:
        with subtests.test(counts=counts, merged=merged):
            assert roll_up(counts) == merged


def after(counts: list[int]) -> list[int]:
    """Return the packs that are left; an object in several counts each time."""
    split = roll_up(counts)
    return sorted([*counts[split:], *([sum(counts[:split])] if split else [])])


@given(COUNTS)
def test_each_pack_is_twice_as_large_as_the_next_one(counts: list[int]) -> None:
    left = after(counts)
    assert all(large >= 2 * small for small, large in pairwise(left))
    assert roll_up(left) == 0


@given(COUNTS)
def test_none_becomes_one_alone(counts: list[int]) -> None:
    assert roll_up(counts) != 1
