"""The charts of a module's history."""

from hypothesis import given
from hypothesis import strategies as st

from huai_server.http.pages import charts
from huai_server.http.pages.history import DAY_SECONDS, Tally

NOW = 100 * DAY_SECONDS + 5
NUMBERS = st.integers(0, (1 << 63) - 1)


def test_a_period_without_a_commit_keeps_the_size() -> None:
    days = {97: Tally(1, 2, 3, bytes=50, entries=5), 99: Tally(added=4, bytes=70, entries=9)}
    slots = charts.slots(days, charts.PERIODS["month"], NOW, DAY_SECONDS)
    assert [slot.start // DAY_SECONDS for slot in slots] == [97, 98, 99, 100]
    assert [slot.tally.bytes for slot in slots] == [50, 50, 70, 70]
    assert [slot.tally.added for slot in slots] == [1, 0, 4, 0]


def test_a_week_sums_its_days_and_an_older_commit_gives_the_size() -> None:
    days = {1: Tally(9, bytes=7, entries=1), 98: Tally(1, entries=2), 99: Tally(2, entries=3)}
    slots = charts.slots(days, charts.Period(7 * DAY_SECONDS, 2), NOW, DAY_SECONDS)
    assert [slot.tally for slot in slots] == [Tally(bytes=7, entries=1), Tally(3, entries=3)]


def test_bars_have_the_heights_of_their_numbers() -> None:
    slots = [charts.Slot(0, Tally(added=30, removed=10, changed=20))]
    chart = charts.churn(slots, height=68)
    (bar,) = chart.bars
    assert chart.most == (50, 10)
    assert (bar.added, bar.changed, bar.removed) == ((28, 30), (8, 20), (58, 10))


def test_bytes_of_commits_that_do_not_state_them_are_what_growth_proves() -> None:
    sizes = [(5, 3), (9, 6), (9, 0), (2, 1), (8, 0)]
    slots = [
        charts.Slot(at, Tally(bytes=size, new_bytes=new)) for at, (size, new) in enumerate(sizes)
    ]
    tallies = [slot.tally for slot in charts.in_bytes(slots)]
    assert [(each.added, each.removed) for each in tallies] == [
        *((3, 0), (6, 2), (0, 0), (1, 8), (6, 0)),
    ]


def test_strokes_are_bars_in_few_bytes() -> None:
    tallies = (Tally(added=30, removed=1), Tally(), Tally(added=15))
    small = charts.strokes([charts.Slot(at, each) for at, each in enumerate(tallies)])
    assert small.paths == {"added": "M14 8v16M70 16v8", "removed": "M14 23v1"}
    assert (small.total.added, small.total.removed, small.total.changed) == (45, 1, 0)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=60))
def test_nothing_leaves_the_picture(numbers: list[tuple[int, int, int, int]]) -> None:
    slots = [charts.Slot(at, Tally(*each)) for at, each in enumerate(numbers)]
    bars, line = charts.churn(slots), charts.line(slots, lambda tally: tally.bytes)
    for bar in bars.bars:
        assert charts.LEFT <= bar.x <= bar.x + bars.width <= charts.WIDTH
        for top, height in (bar.added, bar.changed, bar.removed):
            assert -0.2 <= top <= top + height <= charts.HEIGHT + 0.2
    for x, y, *_ in line.points:
        assert charts.LEFT <= x <= charts.WIDTH
        assert 0 <= y <= charts.HEIGHT


def test_a_calendar_has_a_column_for_each_week() -> None:
    """Day 100 is a Saturday."""
    tallies = {
        day: Tally(commits=number) for day, number in [(-999, 9), (95, 1), (96, 2), (100, 4)]
    }
    year = charts.calendar(tallies, NOW)
    column = (charts.CALENDAR_WEEKS - 1) * charts.CELL
    assert [(each.x, each.y // charts.CELL, each.level) for each in year.days] == [
        *((column, 0, 1), (column, 1, 2), (column, 5, 4)),
    ]
    assert [text for _, text in year.months] == [f"{1 + (4 + n) % 12:02}" for n in range(12)]
    assert charts.calendar({}, NOW).days == []


def test_the_colour_of_a_lag() -> None:
    assert [charts.lag_level(lag, 100) for lag in (0, 10, 11, 50, 51, 100, 101)] == [
        *(0, 0, 1, 1, 2, 2, 3),
    ]
