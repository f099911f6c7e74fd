"""Which steps there are: few of them lead from each commit to the newest, and few are written."""

from collections.abc import Iterable
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from huai_schema.codec.static_files import NOTHING, Static, StaticFile, Step, cheapest
from huai_server.static import catalog

BYTES = 10_000


class Made:
    """What a publisher would have made of commits with these serials."""

    def __init__(self, serials: Iterable[int]) -> None:
        self.serials = list(serials)
        self.lists: dict[bytes, Static] = {}
        self.steps: list[Step] = []
        self.head = catalog.begin(self.serials[0], self.name(self.serials[0]))
        self.head = catalog.set_whole(self.head, self.file())
        for serial in self.serials[1:]:
            self.add(serial)

    @staticmethod
    def name(serial: int) -> str:
        return f"{serial:040x}"

    def file(self) -> StaticFile:
        return StaticFile(BYTES, (len(self.steps) + 2**32).to_bytes(32, "big"))

    def add(self, serial: int) -> None:
        for old in catalog.sources(self.head.commits, serial):
            self.steps.append(Step(old, serial, self.file()))
        made = [step for step in self.steps if step.new == serial]
        found = catalog.advance(self.head, serial, self.name(serial), made)
        self.head = found.head
        if found.closed:
            assert Static.decode(found.closed.encode(), "list") == found.closed
            digest = len(self.lists).to_bytes(32, "big")
            self.lists[digest] = found.closed
            self.head = catalog.add_list(self.head, found.closed, StaticFile(1, digest))
        assert Static.decode(self.head.encode(), "head") == self.head

    def way(self, serial: int) -> list[Step]:
        """As a client finds it: by the head, and by one list."""
        steps = list(self.head.steps)
        for each in self.head.lists:
            if each.first <= serial <= each.last:
                steps += self.lists[each.file.digest].steps
        way = cheapest(steps, [serial], self.head.newest, request=1)
        assert way is not None, serial
        return way


def test_few_steps_from_everywhere() -> None:
    made = Made(range(1, 1400))
    for serial in made.serials:
        missed = 1399 - serial
        digits = len(f"{missed:o}")
        assert len(made.way(serial)) <= min(missed, 14 * digits)
        assert len(made.way(serial)) <= 40
    assert len(made.head.encode()) < 16_000
    assert all(len(each.encode()) < 12_000 for each in made.lists.values())
    # Each level writes each change once.
    assert len(made.steps) < 1398 * 1.2


@settings(max_examples=20)
@given(
    st.lists(st.one_of(st.integers(1, 3), st.integers(1, 900)), min_size=1, max_size=100),
    st.integers(1, 200),
)
def test_serials_that_leap(leaps: list[int], first: int) -> None:
    made = Made(accumulate(leaps, initial=first))
    for serial in made.serials:
        way = made.way(serial)
        for before, after in pairwise(way):
            assert before.new == after.old
        assert not way or (way[0].old, way[-1].new) == (serial, made.serials[-1])


@pytest.mark.parametrize("floor", [1, 2, 63, 64, 65, 200, 511, 512, 640, 699, 700])
def test_what_is_cut_is_not_named(floor: int) -> None:
    made = Made(range(1, 701))
    made.head = catalog.set_whole(made.head, StaticFile(5, b"w" * 32))
    made.head = catalog.cut(made.head, floor)
    Static.decode(made.head.encode(), "head")
    for serial in range(floor, 701):
        assert made.way(serial) or serial == 700
    assert made.way(NOTHING)
    named = [step.old for step in made.head.steps if step.old]
    assert min([*named, 700]) >= floor
    assert all(each.last >= floor for each in made.head.lists)
    for serial in range(701, 800):  # it goes on from there
        made.add(serial)
    assert all(made.way(serial) for serial in range(max(floor, 2), 799))


def test_a_pack_of_all_goes_with_its_commit() -> None:
    made = Made(range(1, 100))
    step = catalog.whole(made.head)
    assert step is not None
    assert step.new == 1
    assert catalog.whole(catalog.cut(made.head, 2)) is None
