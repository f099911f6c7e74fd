"""Assignment of ranges to mirrors, by a clock that the test sets."""

import random

from huai_client.transfer.http.ranges import Span
from huai_client.transfer.large.shared_ranges import AssignedRange, SharedRanges
from tests.support.clock import Clock

MIB = 1 << 20
SPANS = [Span(at * MIB, (at + 1) * MIB) for at in range(6)]
A, B, C = 0, 1, 2


def assign(ranges: SharedRanges, mirror: int, most: int = 4) -> AssignedRange:
    assigned = ranges.assign(mirror, most)
    assert assigned is not None
    return assigned


def test_a_mirror_has_only_so_many_at_a_time() -> None:
    ranges = SharedRanges(SPANS, Clock())
    first = assign(ranges, A, 2)
    assign(ranges, A, 2)
    assert ranges.assign(A, 2) is None
    ranges.complete(first)
    assert assign(ranges, A, 2).span == SPANS[2]


def test_what_a_mirror_leaves_goes_to_others() -> None:
    ranges = SharedRanges(SPANS[:3], Clock())
    assign(ranges, A)
    done = assign(ranges, A)
    ranges.complete(done)
    assign(ranges, A)
    ranges.return_ranges(A)
    assert {assign(ranges, B).span, assign(ranges, B).span} == {SPANS[0], SPANS[2]}


def test_of_a_wrong_range_what_is_wrong_is_asked_of_others() -> None:
    ranges = SharedRanges(SPANS[:1], Clock())
    block = Span(1000, 2000)
    assert ranges.complete(assign(ranges, A), [block])
    assert assign(ranges, B).span == block


def test_what_nobody_brings_is_left() -> None:
    ranges = SharedRanges(SPANS, Clock())
    ranges.complete(assign(ranges, A))
    assign(ranges, A)
    ranges.return_ranges(A)
    assert ranges.left() == SPANS[1:]


def test_a_range_that_is_overdue_is_taken_over() -> None:
    clock = Clock()
    ranges = SharedRanges(SPANS[:2], clock)
    slow = assign(ranges, A)
    ours = assign(ranges, B)
    clock.now += 2
    ranges.complete(ours)
    clock.now += 8
    assert ranges.assign(B, 4) is None, "three times the two seconds, and five more"
    clock.now += 2
    is_repeated = assign(ranges, B)
    assert (is_repeated.span, is_repeated.is_repeated) == (slow.span, True)
    assert ranges.assign(C, 4) is None, "nothing is asked three times"
    assert not ranges.is_overtaken(A)
    assert ranges.complete(is_repeated)
    assert ranges.is_overtaken(A)
    assert ranges.over
    with ranges.may_write(slow) as counts:
        assert not counts
    assert not ranges.complete(slow)


def test_who_is_first_after_all_is_not_overtaken() -> None:
    clock = Clock()
    ranges = SharedRanges(SPANS[:1], clock)
    slow = assign(ranges, A)
    clock.now += 60
    is_repeated = assign(ranges, B)
    assert ranges.complete(slow)
    assert not ranges.complete(is_repeated)
    assert not ranges.is_overtaken(A)
    assert not ranges.is_overtaken(B)


def test_who_takes_over_and_fails_leaves_the_range_where_it_was() -> None:
    clock = Clock()
    ranges = SharedRanges(SPANS[:1], clock)
    slow = assign(ranges, A)
    clock.now += 60
    assert ranges.complete(assign(ranges, B), [SPANS[0]])
    assert ranges.assign(C, 4) is not None, "taken over once more"
    ranges.return_ranges(C)
    assert ranges.complete(slow)
    assert ranges.over


def test_an_end_before_all_is_there() -> None:
    ranges = SharedRanges(SPANS, Clock())
    assign(ranges, A)
    ranges.end()
    assert ranges.over
    assert ranges.assign(A, 4) is None


def test_every_range_comes_whatever_mirrors_do() -> None:
    """Mirrors act in any order, as long as one continues."""
    for seed in range(300):
        chance, clock = random.Random(seed), Clock()
        ranges = SharedRanges(SPANS, clock)
        way: list[AssignedRange] = []
        brought: list[Span] = []
        for _ in range(1000):
            clock.now += chance.random() * 5
            if (assigned := ranges.assign(chance.choice((A, B, C)), 2)) is not None:
                way.append(assigned)
            deed = chance.choice(("came", "wrong", "leaves", "waits"))
            if way and deed in ("came", "wrong"):
                assigned = way.pop(chance.randrange(len(way)))
                wrong = [assigned.span] if deed == "wrong" else []
                if ranges.complete(assigned, wrong) and not wrong:
                    brought.append(assigned.span)
            elif deed == "leaves":
                leaves = chance.choice((A, B))
                ranges.return_ranges(leaves)
                way = [assigned for assigned in way if assigned.mirror != leaves]
            if ranges.over:
                break
        assert sorted(brought) == SPANS or ranges.left() or way
        assert len(brought) == len({*brought})
