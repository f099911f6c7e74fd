"""The page of all mirrors: which serial of each module they hold, and how far they are behind.

Reads repositories in threads.  A damaged module is left out: the front page reports it.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import median_low
from typing import NamedTuple

from fastapi import Response

from huai_program.durations import seconds
from huai_schema.errors import HuaiError
from huai_server.config.mirrors import AllowedDownstream
from huai_server.http.pages.charts import LagStrokes, lag_level, lag_strokes
from huai_server.http.pages.rendering import Page
from huai_server.http.pages.status import Now
from huai_server.mirrors.record import Probe
from huai_server.mirrors.states import MirrorState

_ROWS, _COLUMNS, _SERIALS = 45, 12, 20
_VERDICTS = ("good", "unreachable", "stale", "lies")
"""The verdicts of probes, the worst last."""
_log = logging.getLogger(__name__)


class MirrorView(NamedTuple):
    """The part of the page that a request wants."""

    start: int
    """The number of the first mirror."""
    column: int
    """The number of the first module."""
    module: str = ""
    """The module whose rollouts are shown; none for another text."""


class Column(NamedTuple):
    """A module, and how its newest commit reached the mirrors."""

    module: str
    mirrors: Mapping[str, MirrorState]
    serial: int
    holders: int
    """The mirrors that hold the newest commit."""
    median: int | None
    """The seconds within which half of these had it."""


class Rollout(NamedTuple):
    """The spread of a commit over the mirrors."""

    serial: int
    time: int
    """Seconds since the epoch."""
    delays: Sequence[int]
    """The seconds after which each mirror had it that got it, in ascending order."""

    def within(self, percent: int) -> int:
        """Return the seconds within which `percent` of the mirrors that got the commit had it."""
        return self.delays[(len(self.delays) - 1) * percent // 100]


class Row(NamedTuple):
    """A mirror, with its state in each of the columns."""

    mirror: str
    protocols: Sequence[str]
    cells: Sequence[MirrorState | None]
    days: LagStrokes
    """The lag of the module of this page that was most behind."""
    percentiles: Sequence[int]
    """The greatest of these modules of each of `lag.PERCENTILES`, in seconds."""
    probe: Probe | None
    """The worst result of the last probes of these modules."""
    downstream: AllowedDownstream


async def mirrors_page(
    page: Page, modules: Mapping[str, Path], view: MirrorView, now: Now
) -> Response:
    """Return the page of all mirrors; an unreadable module is logged and left out."""
    start, column = view.start, view.column
    mirrored = [name for name in sorted(modules) if now.known_mirrors.has_records(name)]
    columns = []
    for name in mirrored[column : column + _COLUMNS]:
        try:
            states = await now.known_mirrors.states(name, modules[name])
            head = await now.facts.head(name) if states else None
        except HuaiError as error:
            # The message holds paths of this machine, so only the log gets it.
            _log.warning("%s: %s", name, error.message)
            continue
        if head is not None:
            delays = [
                each.since - head.time for each in states if each.attestation.commit == head.commit
            ]
            delay = max(0, median_low(delays)) if delays else None
            by_name = {each.mirror: each for each in states}
            columns.append(Column(name, by_name, head.info.serial, len(delays), delay))
    max_lag = seconds(now.registry.served().mirrors.settings.max_lag)
    names = sorted({name for each in columns for name in each.mirrors})
    rollouts: Sequence[Rollout] = ()
    if view.module in mirrored:
        rollouts = await _rollouts(view.module, modules[view.module], now)
    values = {
        "columns": columns,
        "rows": [_row(name, columns, max_lag, page.now) for name in names[start : start + _ROWS]],
        "module": view.module,
        "rollouts": rollouts,
        "all": len(names),
        "start": start,
        "column": column,
        "later": start + _ROWS if start + _ROWS < len(names) else None,
        "further": column + _COLUMNS if column + _COLUMNS < len(mirrored) else None,
        "level": lambda lag: lag_level(lag, max_lag),
    }
    return page.render("mirrors.html", values)


async def _rollouts(name: str, repository: Path, now: Now) -> list[Rollout]:
    """Return the rollouts of the 20 newest commits of a module, newest first.

    Without any for a module that cannot be read, which is logged.
    """
    try:
        commits = await now.known_mirrors.commits.get(repository)
        states = await now.known_mirrors.states(name, repository)
    except HuaiError as error:
        _log.warning("%s: %s", name, error.message)
        return []
    rollouts = []
    for serial, (_, committed) in islice(
        reversed(commits.times.items() if commits else ()), _SERIALS
    ):
        arrivals = (each.history.arrival(committed, each.now, each.lag) for each in states)
        delays = sorted(arrival - committed for arrival in arrivals if arrival is not None)
        rollouts.append(Rollout(serial, committed, delays))
    return rollouts


def _row(name: str, columns: Sequence[Column], max_lag: int, now: int) -> Row:
    """Return a mirror's row, with the worst lag of each day of the modules in `columns`."""
    states = [each.mirrors[name] for each in columns if name in each.mirrors]
    urls = {url for each in states for url in each.attestation.urls}
    # None before the record is less than any lag.
    days = [
        max(lags, key=lambda lag: -1 if lag is None else lag)
        for lags in zip(*(each.days for each in states), strict=True)
    ]
    probes = [each.probe for each in states if each.probe]
    return Row(
        name,
        sorted({url.partition("://")[0] for url in urls}),
        [each.mirrors.get(name) for each in columns],
        lag_strokes(days, max_lag, now),
        [max(numbers) for numbers in zip(*(each.percentiles for each in states), strict=True)],
        max(probes, key=lambda each: _VERDICTS.index(each.verdict), default=None),
        states[0].downstream,
    )
