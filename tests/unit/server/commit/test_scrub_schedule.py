"""The due part of a round: spread over its time, and all of it in time."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from huai_server.commit.scrub import EVERYTHING, cost, due, following_round
from huai_server.store.scrub_record import Round

DAY = 86400
SPAN = 30 * DAY
BEGUN = 1_000_000_000


def test_what_is_due_grows_with_the_time() -> None:
    begun = Round(BEGUN)
    assert due(begun, 10, 1 << 40, SPAN, BEGUN) == 0
    half = due(begun, 10, 1 << 40, SPAN, BEGUN + SPAN * 9 // 20)
    assert half == cost(10, 1 << 40) // 2
    assert due(begun, 10, 1 << 40, SPAN, BEGUN + SPAN * 9 // 10) == EVERYTHING


def test_what_was_read_is_not_due() -> None:
    read = Round(BEGUN).passed(b"a", 5, 1 << 39)
    assert due(read, 10, 1 << 40, SPAN, BEGUN + SPAN * 9 // 20) == 0
    assert due(read, 10, 1 << 40, SPAN, BEGUN + SPAN * 9 // 20 + DAY) > 0


def test_a_round_that_lies_ahead_has_nothing_due() -> None:
    assert due(Round(BEGUN + DAY), 10, 1 << 40, SPAN, BEGUN) == 0


def test_the_next_round_begins_when_this_one_was_to_end() -> None:
    done = Round(BEGUN).passed(b"z", 10, 1 << 40)
    length = SPAN * 9 // 10
    assert following_round(done, SPAN, BEGUN + DAY) == Round(BEGUN + length)
    assert following_round(done, SPAN, BEGUN + length + DAY) == Round(BEGUN + length)
    # The delay of a round that was late by more than a round is not caught up.
    assert following_round(done, SPAN, BEGUN + 10 * length) == Round(BEGUN + 10 * length)
    assert following_round(done, None, BEGUN + DAY) == Round(BEGUN + DAY)


@given(
    sizes=st.lists(st.integers(0, 1 << 30), min_size=1, max_size=12),
    every=st.integers(3600, SPAN // 10),
)
def test_each_file_is_read_again_within_the_span(sizes: list[int], every: int) -> None:
    """Runs come at least each tenth of the period, and read what is due."""
    current, now = Round(BEGUN), BEGUN
    read: dict[int, list[int]] = {number: [BEGUN] for number in range(len(sizes))}
    at = 0
    while now < BEGUN + 3 * SPAN:
        left = due(current, len(sizes), sum(sizes), SPAN, now)
        while left > 0:
            if at == len(sizes):
                current, at = following_round(current, SPAN, now), 0
                break
            read[at].append(now)
            left -= cost(1, sizes[at])
            current = current.passed(b"%d" % at, 1, sizes[at])
            at += 1
        now += every
    for times in read.values():
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert max(gaps) <= SPAN
        assert times[-1] >= now - SPAN - every
