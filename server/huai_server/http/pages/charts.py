"""Charts of a module's history, as the coordinates of SVG elements.

Pure.  The templates draw them, with the values of each period in its `<title>`, which browsers
show at the pointer.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from typing import NamedTuple

from huai_server.http.pages.history import DAY_SECONDS, Tally

WIDTH, HEIGHT, LEFT = 360, 150, 64
STROKES_WIDTH, STROKES_HEIGHT = 84, 24
CALENDAR_WEEKS, CELL = 53, 13
_TOP = 8
_GAP = 0.25
"""The share of a period's width that stays free between two bars."""
_LABELS = 6
"""The most dates below a chart."""


class Period(NamedTuple):
    """The time that a chart shows."""

    seconds: int
    """The length of one bar."""
    bars: int


PERIODS: Mapping[str, Period] = {
    "day": Period(3600, 24),
    "month": Period(DAY_SECONDS, 30),
    "year": Period(7 * DAY_SECONDS, 53),
}
WEEK = Period(DAY_SECONDS, 7)


class Slot(NamedTuple):
    """One period of a chart."""

    start: int
    """Seconds since the epoch."""
    tally: Tally
    """Without a commit in the period: no changes, and the size that the module had."""


class Bar(NamedTuple):
    """The bars of one period: above the base line what was added or changed, below it removals."""

    slot: Slot
    x: float
    added: tuple[float, float]
    """The y of the upper edge, and the height."""
    changed: tuple[float, float]
    removed: tuple[float, float]


class Churn(NamedTuple):
    """A chart of the changes."""

    bars: Sequence[Bar]
    width: float
    """The width of a bar."""
    base: float
    """The y of the base line."""
    most: tuple[int, int]
    """The largest numbers above and below the base line."""


class Line(NamedTuple):
    """A chart of a value over time."""

    points: Sequence[tuple[float, float, int, int]]
    """The place of each value, its time in seconds since the epoch, and the value."""
    low: int
    high: int

    @property
    def path(self) -> str:
        """The `points` of an SVG polyline."""
        return " ".join(f"{x},{y}" for x, y, *_ in self.points)


def slots(days: Mapping[int, Tally], period: Period, now: int, seconds: int) -> list[Slot]:
    """Return the periods up to `now`, oldest first; those before the first commit are left out.

    These are at most `period.bars`; `now` is in seconds since the epoch.  `days` has the changes by
    multiples of `seconds` since the epoch.
    """
    end = now // period.seconds + 1
    first = end - period.bars
    sums: dict[int, Tally] = {}
    before = Tally()
    for day in sorted(days):
        place = day * seconds // period.seconds
        if place < first:
            before = days[day]
        else:
            sums[place] = sums[place].plus(days[day]) if place in sums else days[day]
    if not before.entries and sums:
        first = min(sums)
    result = []
    for place in range(first, end):
        before = sums.get(place, Tally(bytes=before.bytes, entries=before.entries))
        result.append(Slot(place * period.seconds, before))
    return result


def churn(row: Sequence[Slot], width: int = WIDTH, height: int = HEIGHT, left: int = LEFT) -> Churn:
    """Return the chart of the changes in each period; it has the sizes in units of the SVG.

    `left` is the width that stays free for labels.
    """
    above = max((each.tally.added + each.tally.changed for each in row), default=0)
    below = max((each.tally.removed for each in row), default=0)
    scale = (height - _TOP) / max(1, above + below)
    base = _TOP + above * scale
    step = (width - left) / max(1, len(row))
    bars = []
    for place, slot in enumerate(row):
        added, changed, removed = (
            round(number * scale, 1)
            for number in (slot.tally.added, slot.tally.changed, slot.tally.removed)
        )
        x = round(left + (place + _GAP / 2) * step, 1)
        upper = round(base - added, 1)
        edges = (upper, added), (round(upper - changed, 1), changed), (round(base, 1), removed)
        bars.append(Bar(slot, x, *edges))
    return Churn(bars, round(step * (1 - _GAP), 1), round(base, 1), (above, below))


def in_bytes(row: Sequence[Slot]) -> list[Slot]:
    """Return the periods with bytes that are new as added, and bytes that are gone as removed.

    Older commits do not state new bytes: both are at least what growth proves.  Nothing is known to
    be gone in the first period.
    """
    result = []
    before = None
    for slot in row:
        growth = 0 if before is None else slot.tally.bytes - before
        new = max(slot.tally.new_bytes, growth)
        removed = 0 if before is None else new - growth
        result.append(Slot(slot.start, Tally(added=new, removed=removed)))
        before = slot.tally.bytes
    return result


class Strokes(NamedTuple):
    """A small chart of the changes: paths of vertical strokes, and the sums."""

    paths: Mapping[str, str]
    """The data of an SVG path by kind of change; kinds without a change are left out."""
    total: Tally


def strokes(row: Sequence[Slot]) -> Strokes:
    """Return the chart of the changes in each period, in few bytes: a page has many."""
    chart = churn(row, STROKES_WIDTH, STROKES_HEIGHT, 0)
    paths: dict[str, str] = {}
    for bar in chart.bars:
        for kind in ("added", "changed", "removed"):
            top, height = getattr(bar, kind)
            if height:
                length = max(1, round(height))
                y = min(round(top), STROKES_HEIGHT - length)
                stroke = f"M{bar.x + chart.width / 2:.0f} {y}v{length}"
                paths[kind] = paths.get(kind, "") + stroke
    return Strokes(paths, reduce(Tally.plus, (slot.tally for slot in row), Tally()))


def line(row: Sequence[Slot], value: Callable[[Tally], int]) -> Line:
    """Return the chart of a value at the end of each period."""
    values = [value(each.tally) for each in row]
    low, high = min(values, default=0), max(values, default=0)
    span = HEIGHT - 2 * _TOP

    def y(number: int) -> float:
        share = (number - low) / (high - low) if high > low else 0.5
        return round(HEIGHT - _TOP - share * span, 1)

    step = (WIDTH - LEFT) / max(1, len(row))
    middles = (round(LEFT + (place + 0.5) * step, 1) for place in range(len(row)))
    points = [(x, y(n), slot.start, n) for x, n, slot in zip(middles, values, row, strict=True)]
    return Line(points, low, high)


def labels(row: Sequence[Slot], period: Period) -> list[tuple[float, str]]:
    """Return the dates or hours below a chart, each with the x of its middle."""
    step = (WIDTH - LEFT) / max(1, len(row))
    form = "%H:%M" if period.seconds < DAY_SECONDS else "%m-%d"
    stride = -(-len(row) // _LABELS)
    return [
        (round(LEFT + (place + 0.5) * step, 1), f"{datetime.fromtimestamp(slot.start, UTC):{form}}")
        for place, slot in enumerate(row)
        if place % max(1, stride) == 0
    ]


class CalendarDay(NamedTuple):
    """A day with commits."""

    slot: Slot
    x: int
    y: int
    level: int
    """From 1 to 4, for the most commits of a day."""


class Calendar(NamedTuple):
    """A year of days, a column for each week, Monday first."""

    days: Sequence[CalendarDay]
    months: Sequence[tuple[float, str]]
    """The x of the first week of each month, and its name."""


def calendar(tallies: Mapping[int, Tally], now: int) -> Calendar:
    """Return the calendar of the year that ends at `now` (seconds since the epoch).

    `tallies` are by day since the epoch.
    """
    today = now // DAY_SECONDS
    # The epoch was a Thursday.
    first = today - (today + 3) % 7 - 7 * (CALENDAR_WEEKS - 1)
    known_days = [day for day in sorted(tallies) if first <= day <= today]
    most = max((tallies[day].commits for day in known_days), default=0)
    days = []
    for day in known_days:
        week, weekday = divmod(day - first, 7)
        level = -(-4 * tallies[day].commits // most)
        slot = Slot(day * DAY_SECONDS, tallies[day])
        days.append(CalendarDay(slot, week * CELL, weekday * CELL, level))
    dates = (
        (day - first, datetime.fromtimestamp(day * DAY_SECONDS, UTC))
        for day in range(first, today + 1)
    )
    months = [(day // 7 * CELL + CELL / 2, f"{date:%m}") for day, date in dates if date.day == 1]
    return Calendar(days, months)


def lag_level(lag: int, max_lag: int) -> int:
    """Return 0 for at most a tenth of `max_lag`, 1 for half of it, 2 for all of it, 3 for more."""
    return 3 if lag > max_lag else 2 if lag > max_lag // 2 else 1 if lag > max_lag // 10 else 0


class LagDay(NamedTuple):
    """The most that a mirror was behind on one day."""

    start: int
    """Seconds since the epoch."""
    lag: int


class LagStrokes(NamedTuple):
    """A strip of days as paths of vertical strokes, by level, and the worst day."""

    paths: Mapping[int, str]
    worst: LagDay | None


def lag_strokes(lags: Sequence[int | None], max_lag: int, now: int) -> LagStrokes:
    """Return the strip of the days of `MirrorState.days`, in few bytes: a page has many.

    `max_lag` is in seconds; `now`, on the last day, in seconds since the epoch.
    """
    paths: dict[int, str] = {}
    days = []
    for place, lag in enumerate(lags):
        if lag is not None:
            level = lag_level(lag, max_lag)
            paths[level] = paths.get(level, "") + f"M{place * 4 + 2} 0v16"
            days.append(LagDay((now // DAY_SECONDS - len(lags) + 1 + place) * DAY_SECONDS, lag))
    return LagStrokes(paths, max(days, key=lambda day: day.lag, default=None))
