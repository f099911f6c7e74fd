"""The page of all mirrors: which serial of each module they hold, and how far they are behind.

Reads repositories in threads.  A damaged module is left out: the front page reports it.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import NamedTuple
from urllib.parse import urlsplit

from fastapi import Response

from huai_program.durations import seconds
from huai_schema.errors import HuaiError
from huai_server.http.pages.charts import LagDay, lag_days, lag_level
from huai_server.http.pages.rendering import Page
from huai_server.http.pages.status import Now
from huai_server.mirrors.states import MirrorState

_ROWS, _COLUMNS = 100, 24
_log = logging.getLogger(__name__)


class Column(NamedTuple):
    """A module, and how its newest commit reached the mirrors."""

    module: str
    mirrors: Mapping[str, MirrorState]
    serial: int
    holders: int
    """The mirrors that hold the newest commit."""
    median: int | None
    """The seconds within which half of these had it."""


class Row(NamedTuple):
    """A mirror, with its state in each of the columns."""

    mirror: str
    protocols: Sequence[str]
    cells: Sequence[MirrorState | None]
    days: Sequence[LagDay]
    """The lag of the module that was most behind."""


async def mirrors_page(
    page: Page, modules: Mapping[str, Path], start: int, column: int, now: Now
) -> Response:
    """Return the page of the mirrors from `start` on, with the modules from `column` on.

    An unreadable module is logged and left out.
    """
    columns = []
    for name in sorted(modules):
        try:
            states = await now.known_mirrors.states(name, modules[name])
            head = await now.heads.read(name) if states else None
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
    visible_columns = columns[column : column + _COLUMNS]
    values = {
        "columns": visible_columns,
        "rows": [
            _row(name, columns, visible_columns, max_lag, page.now)
            for name in names[start : start + _ROWS]
        ],
        "all": len(names),
        "start": start,
        "column": column,
        "later": start + _ROWS if start + _ROWS < len(names) else None,
        "further": column + _COLUMNS if column + _COLUMNS < len(columns) else None,
        "level": lambda lag: lag_level(lag, max_lag),
    }
    return page.render("mirrors.html", values)


def _row(
    name: str, columns: Sequence[Column], visible_columns: Sequence[Column], max_lag: int, now: int
) -> Row:
    """Return a mirror's row; its worst lag of each day counts."""
    states = [each.mirrors[name] for each in columns if name in each.mirrors]
    urls = {url for each in states for url in each.attestation.urls}
    # None before the record is less than any lag.
    days = [
        max(lags, key=lambda lag: -1 if lag is None else lag)
        for lags in zip(*(each.days for each in states), strict=True)
    ]
    return Row(
        name,
        sorted({urlsplit(url).scheme for url in urls}),
        [each.mirrors.get(name) for each in visible_columns],
        lag_days(days, max_lag, now),
    )
