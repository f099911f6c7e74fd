"""The chart of a module's growth."""

from hypothesis import given
from hypothesis import strategies as st

from huai_server.http.pages.status import HEIGHT, WIDTH, polyline


def test_a_line_goes_from_the_oldest_to_the_newest() -> None:
    assert polyline([0, 50, 100], [0, 5, 10]) == "2.0,22.0 60.0,12.0 118.0,2.0"


def test_one_commit_is_no_line() -> None:
    assert polyline([1], [1]) == ""
    assert polyline([], []) == ""


NUMBERS = st.integers(0, (1 << 63) - 1)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=60))
def test_it_never_leaves_the_picture(commits: list[tuple[int, int]]) -> None:
    times, values = zip(*commits, strict=True)
    for point in polyline(times, values).split():
        x, y = map(float, point.split(","))
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT
