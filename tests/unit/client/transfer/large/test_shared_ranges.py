"""Who is asked for which range, by a clock that the test sets."""

import random

from huai_client.transfer.http.ranges import Span
from huai_client.transfer.large.shared_ranges import SharedRanges, Taken

MIB = 1 << 20
SPANS = [Span(at * MIB, (at + 1) * MIB) for at in range(6)]
A, B, C = 0, 1, 2


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def taken(ranges: SharedRanges, mirror: int, most: int = 4) -> Taken:
    found = ranges.take(mirror, most)
    assert found is not None
    return found


def test_each_range_is_asked_of_one_mirror() -> None:
    ranges = SharedRanges(SPANS, Clock())
    found = [taken(ranges, mirror) for mirror in (A, B, A, B, B, A)]
    assert [each.span for each in found] == SPANS
    assert ranges.take(A, 4) is None
    for each in found:
        assert ranges.came(each)
    assert ranges.over
    assert ranges.left() == []


def test_a_mirror_has_only_so_many_at_a_time() -> None:
    ranges = SharedRanges(SPANS, Clock())
    first = taken(ranges, A, 2)
    taken(ranges, A, 2)
    assert ranges.take(A, 2) is None
    ranges.came(first)
    assert taken(ranges, A, 2).span == SPANS[2]


def test_what_a_mirror_leaves_goes_to_others() -> None:
    ranges = SharedRanges(SPANS[:3], Clock())
    taken(ranges, A)
    done = taken(ranges, A)
    ranges.came(done)
    taken(ranges, A)
    ranges.give_back(A)
    assert {taken(ranges, B).span, taken(ranges, B).span} == {SPANS[0], SPANS[2]}


def test_of_a_wrong_range_what_is_wrong_is_asked_of_others() -> None:
    ranges = SharedRanges(SPANS[:1], Clock())
    block = Span(1000, 2000)
    assert ranges.came(taken(ranges, A), [block])
    assert taken(ranges, B).span == block


def test_what_nobody_brings_is_left() -> None:
    ranges = SharedRanges(SPANS, Clock())
    ranges.came(taken(ranges, A))
    taken(ranges, A)
    ranges.give_back(A)
    assert ranges.left() == SPANS[1:]


def test_a_range_that_is_overdue_is_taken_over() -> None:
    clock = Clock()
    ranges = SharedRanges(SPANS[:2], clock)
    slow = taken(ranges, A)
    ours = taken(ranges, B)
    clock.now += 2
    ranges.came(ours)
    clock.now += 8
    assert ranges.take(B, 4) is None, "three times the two seconds, and five more"
    clock.now += 2
    again = taken(ranges, B)
    assert (again.span, again.again) == (slow.span, True)
    assert ranges.take(C, 4) is None, "nothing is asked three times"
    assert not ranges.is_overtaken(A)
    assert ranges.came(again)
    assert ranges.is_overtaken(A)
    assert ranges.over
    with ranges.writing(slow) as counts:
        assert not counts
    assert not ranges.came(slow)


def test_who_is_first_after_all_is_not_overtaken() -> None:
    clock = Clock()
    ranges = SharedRanges(SPANS[:1], clock)
    slow = taken(ranges, A)
    clock.now += 60
    again = taken(ranges, B)
    assert ranges.came(slow)
    assert not ranges.came(again)
    assert not ranges.is_overtaken(A)
    assert not ranges.is_overtaken(B)


def test_who_takes_over_and_fails_leaves_the_range_where_it_was() -> None:
    clock = Clock()
    ranges = SharedRanges(SPANS[:1], clock)
    slow = taken(ranges, A)
    clock.now += 60
    assert ranges.came(taken(ranges, B), [SPANS[0]])
    assert ranges.take(C, 4) is not None, "taken over once more"
    ranges.give_back(C)
    assert ranges.came(slow)
    assert ranges.over


def test_an_end_before_all_is_there() -> None:
    ranges = SharedRanges(SPANS, Clock())
    taken(ranges, A)
    ranges.end()
    assert ranges.over
    assert ranges.take(A, 4) is None


def test_every_range_comes_whatever_mirrors_do() -> None:
    """Any order of things that mirrors do, as long as one goes on."""
    for seed in range(300):
        chance, clock = random.Random(seed), Clock()
        ranges = SharedRanges(SPANS, clock)
        way: list[Taken] = []
        brought: list[Span] = []
        for _ in range(1000):
            clock.now += chance.random() * 5
            if (found := ranges.take(chance.choice((A, B, C)), 2)) is not None:
                way.append(found)
            deed = chance.choice(("came", "wrong", "leaves", "waits"))
            if way and deed in ("came", "wrong"):
                each = way.pop(chance.randrange(len(way)))
                wrong = [each.span] if deed == "wrong" else []
                if ranges.came(each, wrong) and not wrong:
                    brought.append(each.span)
            elif deed == "leaves":
                leaves = chance.choice((A, B))
                ranges.give_back(leaves)
                way = [each for each in way if each.mirror != leaves]
            if ranges.over:
                break
        assert sorted(brought) == SPANS or ranges.left() or way
        assert len(brought) == len({*brought})
