"""Which steps there are: few of them lead from each commit to the newest, and few are written."""

from collections.abc import Iterable
from copy import deepcopy
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from huai_schema.codec.static_files import NOTHING, Static, StaticFile, Step, cheapest
from huai_server.static import catalog
from tests.support.examples import examples

BYTES = 10_000


class Made:
    """What a publisher would have made of commits with these serials."""

    def __init__(self, serials: Iterable[int]) -> None:
        self.serials = list(serials)
        self.lists: dict[bytes, Static] = {}
        self.steps: list[Step] = []
        self.rest: Static | None = None
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
        self.divide()

    def divide(self) -> None:
        """As what is published is: the head, and a list of the rest."""
        if self.rest is None or catalog.is_outdated(self.rest, self.head):
            self.rest = self.head
        self.said = catalog.front(self.head, self.rest, StaticFile(1, bytes(32)))
        assert Static.decode(self.said.encode(), "head") == self.said

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


@examples(20)
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


def test_what_is_cut_is_not_named(subtests: pytest.Subtests) -> None:
    whole = Made(range(1, 701))
    whole.head = catalog.set_whole(whole.head, StaticFile(5, b"w" * 32))
    for floor in (1, 2, 63, 64, 65, 512, 640, 700):
        with subtests.test(floor=floor):
            made = deepcopy(whole)
            made.head = catalog.cut(made.head, floor)
            Static.decode(made.head.encode(), "head")
            assert all(made.way(serial) for serial in range(floor, 700))
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


def test_a_head_says_what_is_new() -> None:
    """Nearly everybody needs no more; the list of the rest is written for each eight commits."""
    made = Made(range(1, 300))
    written = set()
    for serial in range(300, 1000):
        made.add(serial)
        assert len(made.said.encode()) < 1_500
        over = serial % catalog.BLOCK  # the steps before are in a list
        for late in range(serial - min(4, over or 1), serial):
            assert cheapest(made.said.steps, [late], serial) is not None
        assert made.rest is not None
        written.add(made.rest.newest)
        both = catalog.unite(made.said, made.rest)
        assert both.newest == serial
        assert set(both.steps) >= set(made.head.steps)
        assert set(both.lists) == set(made.head.lists)
        named = catalog.list_of_rest(made.said)
        assert named is not None
        assert (named.first, named.last) == (NOTHING, made.rest.newest)
    assert len(written) <= 700 / 8 + 1
