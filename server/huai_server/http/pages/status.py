"""The front page and the page of one module.

Reads repositories in threads.  A damaged one is reported in its row, and hides no other.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from fastapi import Response

from huai_schema.errors import HuaiError
from huai_server.http.api import Heads
from huai_server.http.branch_cache import BranchCache
from huai_server.http.metrics.traffic import Traffic
from huai_server.http.mirrors.known import KnownMirrors
from huai_server.http.module_facts import ModuleFacts
from huai_server.http.pages.history import KEPT, RECENT, newest_commits
from huai_server.http.pages.rendering import Page
from huai_server.store.repository import Head

WIDTH, HEIGHT = 120, 24
_MARGIN = 2


def polyline(times: Sequence[int], values: Sequence[int]) -> str:
    """Return the `points` of an SVG polyline; values oldest first, empty for less than two."""
    if len(values) < 2:
        return ""
    first, last = min(times), max(times)
    low, high = min(values), max(values)

    def x(place: int) -> float:
        """Place by time, or evenly if all times are equal."""
        share = (
            (times[place] - first) / (last - first) if last > first else place / (len(values) - 1)
        )
        return _MARGIN + share * (WIDTH - 2 * _MARGIN)

    def y(place: int) -> float:
        share = (values[place] - low) / (high - low) if high > low else 0.5
        return HEIGHT - _MARGIN - share * (HEIGHT - 2 * _MARGIN)

    return " ".join(f"{x(place):.1f},{y(place):.1f}" for place in range(len(values)))


_FEWEST_GAPS = 3


def next_expected(times: Sequence[int]) -> int | None:
    """Predict the next commit from the median gap, in seconds since the epoch.

    `times` has the newest first; None for fewer than four commits.
    """
    gaps = sorted(later - earlier for later, earlier in pairwise(times) if later > earlier)
    return times[0] + gaps[len(gaps) // 2] if len(gaps) >= _FEWEST_GAPS else None


_ROWS = 100
_log = logging.getLogger(__name__)


class ModuleRow(NamedTuple):
    """A module as a page shows it."""

    name: str
    commits: tuple[Head, ...] = ()
    """The newest commits, newest first."""
    growth: str = ""
    """The size over these commits, as points of a polyline."""
    problem: bool = False
    damaged: int = 0
    """Files that the last scrub found damaged."""
    undigested: int = 0
    """Files without a digest yet."""
    fallback_clients: int = 0
    """Connected clients of plain rsync."""

    @property
    def expected(self) -> int | None:
        """Return when the next commit is probably due, in seconds since the epoch."""
        return next_expected([each.time for each in self.commits])


class Now(NamedTuple):
    """The sources of facts on pages."""

    heads: Heads
    facts: ModuleFacts
    traffic: Traffic
    known_mirrors: KnownMirrors
    recent: BranchCache[tuple[Head, ...]]


async def front_page(page: Page, modules: Mapping[str, Path], now: Now) -> Response:
    """Return the page of all modules."""
    rows = [await _row(name, modules[name], now) for name in sorted(modules)]
    totals = [row.commits[0].info.totals for row in rows if row.commits]
    values = {
        "modules": rows,
        "entries": sum(each.entries for each in totals),
        "bytes": sum(each.bytes for each in totals),
        # The reader of this page does not count.
        "subscribers": max(0, now.traffic.running["events"] - page.follows),
        "fetches": now.traffic.running["git"] + now.traffic.running["content"],
        "fallback_clients": sum(row.fallback_clients for row in rows),
    }
    return page.render("front.html", values)


async def module_page(
    page: Page, module: tuple[str, Path], before: int | None, now: Now
) -> Response:
    """Return the page of a module; its commits below the serial `before`, or all."""
    repository = module[1]
    row = await _row(*module, now)
    mirrors = () if row.problem else await now.known_mirrors.states(*module)
    newest = row.commits[0] if row.commits else None
    older = None
    if newest is not None and (before is not None or len(row.commits) == RECENT):
        kept_commits = await asyncio.to_thread(newest_commits, repository, KEPT)
        rows = [each for each in kept_commits if before is None or each.info.serial < before]
        row = row._replace(commits=tuple(rows[:_ROWS]))
        older = rows[_ROWS - 1].info.serial if len(rows) > _ROWS else None
    return page.render(
        "module.html", {"module": row, "newest": newest, "older": older, "mirrors": mirrors}
    )


async def _row(name: str, repository: Path, now: Now) -> ModuleRow:
    try:
        commits = await now.recent.get(repository) or ()
    except HuaiError as error:
        # The message holds paths of this machine, so only the log gets it.
        _log.warning("%s: %s", name, error.message)
        return ModuleRow(name, problem=True)
    oldest_first = commits[::-1]
    sizes = [each.info.totals.bytes for each in oldest_first]
    undigested = await now.facts.undigested(name) if commits else None
    return ModuleRow(
        name,
        commits,
        polyline([each.time for each in oldest_first], sizes),
        damaged=now.heads.damaged(name),
        undigested=undigested or 0,
        fallback_clients=now.facts.fallback_clients(name) or 0,
    )
