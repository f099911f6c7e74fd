"""The steps of a catalog: few lead from each commit to the newest, and few are written."""

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


class PublishedSteps:
    """The catalog of a publisher of commits with these serials."""

    def __init__(self, serials: Iterable[int]) -> None:
        self.serials = list(serials)
        self.lists: dict[bytes, Static] = {}
        self.steps: list[Step] = []
        self.rest: Static | None = None
        self.head = catalog.first_head(self.serials[0], self.name(self.serials[0]))
        self.head = catalog.set_full_pack(self.head, self.file())
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
        steps = [step for step in self.steps if step.new == serial]
        advanced = catalog.advance(self.head, serial, self.name(serial), steps)
        self.head = advanced.head
        if advanced.closed:
            assert Static.decode(advanced.closed.encode(), "list") == advanced.closed
            digest = len(self.lists).to_bytes(32, "big")
            self.lists[digest] = advanced.closed
            self.head = catalog.add_list(self.head, advanced.closed, StaticFile(1, digest))
        assert Static.decode(self.head.encode(), "head") == self.head
        self.divide()

    def divide(self) -> None:
        """Divide the catalog as for publication, into the head and a list of the rest."""
        if self.rest is None or catalog.is_outdated(self.rest, self.head):
            self.rest = self.head
        self.front = catalog.make_front(self.head, self.rest, StaticFile(1, bytes(32)))
        assert Static.decode(self.front.encode(), "head") == self.front

    def way(self, serial: int) -> list[Step]:
        """Return the steps that a client takes, with the head and one list."""
        steps = list(self.head.steps)
        for listed in self.head.lists:
            if listed.first <= serial <= listed.last:
                steps += self.lists[listed.file.digest].steps
        way = cheapest(steps, [serial], self.head.newest, request=1)
        assert way is not None, serial
        return way


def test_few_steps_from_everywhere() -> None:
    published = PublishedSteps(range(1, 1400))
    for serial in published.serials:
        missed = 1399 - serial
        digits = len(f"{missed:o}")
        assert len(published.way(serial)) <= min(missed, 14 * digits)
        assert len(published.way(serial)) <= 40
    assert len(published.head.encode()) < 16_000
    assert all(len(each.encode()) < 12_000 for each in published.lists.values())
    # Each level writes each change once.
    assert len(published.steps) < 1398 * 1.2


@examples(20)
@given(
    st.lists(st.one_of(st.integers(1, 3), st.integers(1, 900)), min_size=1, max_size=100),
    st.integers(1, 200),
)
def test_serials_that_leap(leaps: list[int], first: int) -> None:
    published = PublishedSteps(accumulate(leaps, initial=first))
    for serial in published.serials:
        way = published.way(serial)
        for before, after in pairwise(way):
            assert before.new == after.old
        assert not way or (way[0].old, way[-1].new) == (serial, published.serials[-1])


def test_what_is_cut_is_not_named(subtests: pytest.Subtests) -> None:
    complete = PublishedSteps(range(1, 701))
    complete.head = catalog.set_full_pack(complete.head, StaticFile(5, b"w" * 32))
    for floor in (1, 2, 63, 64, 65, 512, 640, 700):
        with subtests.test(floor=floor):
            published = deepcopy(complete)
            published.head = catalog.drop_older(published.head, floor)
            Static.decode(published.head.encode(), "head")
            assert all(published.way(serial) for serial in range(floor, 700))
            assert published.way(NOTHING)
            old_serials = [step.old for step in published.head.steps if step.old]
            assert min([*old_serials, 700]) >= floor
            assert all(each.last >= floor for each in published.head.lists)
            for serial in range(701, 800):  # publishing continues from there
                published.add(serial)
            assert all(published.way(serial) for serial in range(max(floor, 2), 799))


def test_a_pack_of_all_goes_with_its_commit() -> None:
    published = PublishedSteps(range(1, 100))
    step = catalog.find_full_pack(published.head)
    assert step is not None
    assert step.new == 1
    assert catalog.find_full_pack(catalog.drop_older(published.head, 2)) is None


def test_a_head_says_what_is_new() -> None:
    """Most clients need no more; the list of the rest is written for each eight commits."""
    published = PublishedSteps(range(1, 300))
    written = set()
    for serial in range(300, 1000):
        published.add(serial)
        assert len(published.front.encode()) < 1_500
        over = serial % catalog.BLOCK  # the steps before are in a list
        for late in range(serial - min(4, over or 1), serial):
            assert cheapest(published.front.steps, [late], serial) is not None
        assert published.rest is not None
        written.add(published.rest.newest)
        united = catalog.unite(published.front, published.rest)
        assert united.newest == serial
        assert set(united.steps) >= set(published.head.steps)
        assert set(united.lists) == set(published.head.lists)
        rest_list = catalog.list_of_rest(published.front)
        assert rest_list is not None
        assert (rest_list.first, rest_list.last) == (NOTHING, published.rest.newest)
    assert len(written) <= 700 / 8 + 1
