"""The front page and the page of one module.

Reads repositories in threads.  A damaged one is reported in its row, and hides no other.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from fastapi import Response

from huai_program.durations import seconds
from huai_schema.codec.keys import Keys, read_keys
from huai_schema.errors import HuaiError
from huai_server.http.branch_cache import BranchCache
from huai_server.http.metrics.collector import Sources
from huai_server.http.mirrors.known import KnownMirrors
from huai_server.http.module_facts import ModuleFacts
from huai_server.http.pages import charts
from huai_server.http.pages.browse import Browser
from huai_server.http.pages.history import (
    DAY_SECONDS,
    Days,
    Recent,
    Tally,
    commits_below,
    tally_periods,
)
from huai_server.http.pages.reading import open_head
from huai_server.http.pages.recipes import (
    Layouts,
    Recipe,
    key_recipe,
    package_recipes,
    read_layouts,
    recipes,
)
from huai_server.http.pages.rendering import Page
from huai_server.http.pages.state import WORDS, Due, State, state_of
from huai_server.http.settings import Registry
from huai_server.http.webhooks.keeper import WebHooks
from huai_server.store.repository import Head, Repository

_MODULES, _ROWS = 40, 25
"""The modules, and the commits of one, on a page."""
_log = logging.getLogger(__name__)


class ModuleRow(NamedTuple):
    """A module as a page shows it."""

    name: str
    state: State
    commits: tuple[Head, ...] = ()
    """The newest commits, newest first."""
    due: Due | None = None
    days: Mapping[int, Tally] = MappingProxyType({})
    """The changes of these commits by day since the epoch."""
    damaged: int = 0
    """Files that the last scrub found damaged."""
    undigested: int = 0
    """Files without a digest yet."""

    @property
    def word(self) -> str:
        """The state in English."""
        return WORDS[self.state]


class Offer(NamedTuple):
    """The facts that the page of a module takes from the content of its newest commit."""

    content_urls: Sequence[str]
    keys: Keys | None
    """The keys that sign the module; None if it is not signed."""
    layouts: Layouts


class Now(NamedTuple):
    """The sources of facts on pages."""

    registry: Registry
    facts: ModuleFacts
    sources: Sources
    known_mirrors: KnownMirrors
    recent: BranchCache[Recent]
    days: BranchCache[Days]
    offers: BranchCache[Offer]
    webhooks: WebHooks
    browser: Browser


class Choice(NamedTuple):
    """The modules that a reader of the front page wants to see, and their order."""

    text: str = ""
    """A part of the names."""
    state: str = ""
    order: str = ""
    """A key of `_ORDERS`; by name for anything else."""
    start: int = 0
    """The number of the first row."""
    everything: bool = False
    """True for all rows on one page."""


_ORDERS: Mapping[str, Callable[[ModuleRow], int]] = {
    "state": lambda row: [*State].index(row.state),
    "time": lambda row: -row.commits[0].time if row.commits else 0,
    "entries": lambda row: -row.commits[0].info.totals.entries if row.commits else 0,
    "size": lambda row: -row.commits[0].info.totals.bytes if row.commits else 0,
}


async def front_page(page: Page, modules: Mapping[str, Path], choice: Choice, now: Now) -> Response:
    """Return the page of the chosen ones among all `modules`; an unreadable one is marked."""
    rows = [await module_row(page, name, modules[name], now) for name in sorted(modules)]
    totals = [row.commits[0].info.totals for row in rows if row.commits]
    states = Counter(row.state for row in rows)
    needle = choice.text.casefold()
    matches = [
        row
        for row in rows
        if needle in row.name.casefold() and choice.state in {"", row.state.value}
    ]
    ordered = sorted(matches, key=_ORDERS.get(choice.order, lambda _: 0))
    first, end = (0, len(rows)) if choice.everything else (choice.start, choice.start + _MODULES)
    values = {
        "modules": ordered[first:end],
        "matches": len(matches),
        "later": end if end < len(matches) else None,
        "week_of": lambda module: _week(module.days, page.now),
        "choice": choice,
        "all": len(rows),
        "states": [(state, WORDS[state], states[state]) for state in State if states[state]],
        "entries": sum(each.entries for each in totals),
        "bytes": sum(each.bytes for each in totals),
        "mirrors": bool(now.registry.served().mirrors.allowed),
    }
    return page.render("front.html", values)


async def module_page(
    page: Page,
    module: tuple[str, Path],
    before: int,
    period: str,
    now: Now,
) -> Response:
    """Return the page of a module, with commits below the serial `before`, or the newest for 0.

    `period`: a key of `charts.PERIODS`; a month for anything else.
    """
    name, repository = module
    row = await module_row(page, name, repository, now)
    values: dict[str, object] = {"module": row, "newest": None, "older": None, "mirrors": ()}
    if row.commits:
        period = period if period in charts.PERIODS else "month"
        max_lag = seconds(now.registry.served().mirrors.settings.max_lag)
        own_urls = now.registry.served().content_urls(name)
        urls, ways = await _ways(repository, name, own_urls, now)
        values |= {
            "newest": row.commits[0],
            "mirrors": await now.known_mirrors.states(name, repository),
            "content_urls": urls,
            "recipes": ways,
            "period": period,
            "periods": [*charts.PERIODS],
            "days_of": lambda mirror: charts.lag_strokes(mirror.days, max_lag, page.now),
        }
        values |= await _charts(page, repository, row.commits, period, now)
        part: Sequence[Head] = row.commits[:_ROWS]
        older = part[-1].info.serial if len(row.commits) > _ROWS else None
        if before:
            part, older = await now.browser.read(
                page.client, lambda: commits_below(repository, before, _ROWS)
            )
        values |= {"module": row._replace(commits=tuple(part)), "older": older}
    return page.render("module.html", values)


def read_offer(repository: Repository, _: object) -> tuple[str | None, Offer | None]:
    """Return the newest commit's id, and what it offers; None twice without one (`BranchCache`)."""
    if (head := repository.head()) is None:
        return None, None
    _, snapshot, descriptor = open_head(repository.path, head)
    chain = read_keys(bytes.fromhex(head.tree), snapshot.reader) if head.valid_until else None
    keys = chain.newest if chain else None
    return head.commit, Offer(descriptor.content_urls, keys, read_layouts(snapshot))


async def _ways(
    repository: Path, name: str, own_urls: Sequence[str], now: Now
) -> tuple[Sequence[str], list[Recipe]]:
    """Return the content URLs of a module, and the ways to mirror and use it.

    `own_urls` replace the URLs of the commit.  A damaged commit is logged, and has neither.
    """
    try:
        offer = await now.offers.get(repository)
    except HuaiError as error:
        _log.warning("%s: %s", name, error.message)
        offer = None
    if offer is None:
        return own_urls, recipes(name, own_urls)
    urls = own_urls or offer.content_urls
    own, *other = recipes(name, urls)
    keys = [key_recipe(offer.keys.keys, offer.keys.threshold)] if offer.keys else []
    return urls, [own, *keys, *other, *package_recipes(name, urls, offer.layouts)]


async def _charts(
    page: Page, repository: Path, commits: Sequence[Head], name: str, now: Now
) -> dict[str, object]:
    """Return the charts of a period, a key of `charts.PERIODS`, as the template needs them."""
    period = charts.PERIODS[name]
    if period.seconds < DAY_SECONDS:
        tallies: Mapping[int, Tally] = tally_periods(commits, period.seconds)
        unit = period.seconds
    else:
        days = await now.days.get(repository)
        tallies, unit = days.tallies if days else {}, DAY_SECONDS
    slots = charts.slots(tallies, period, page.now, unit)
    return {
        "calendar": charts.calendar(tallies, page.now) if name == "year" else None,
        "churn": charts.churn(slots),
        "churn_bytes": charts.churn(charts.in_bytes(slots)),
        "size": charts.line(slots, lambda tally: tally.bytes),
        "count": charts.line(slots, lambda tally: tally.entries),
        "labels": charts.labels(slots, period),
    }


async def module_row(page: Page, name: str, repository: Path, now: Now) -> ModuleRow:
    """Return a module as pages show it; an unreadable one is logged, and marked as such."""
    try:
        commits, due, days = await now.recent.get(repository) or Recent()
    except HuaiError as error:
        # The message holds paths of this machine, so only the log gets it.
        _log.warning("%s: %s", name, error.message)
        return ModuleRow(name, State.UNREADABLE)
    newest = commits[0] if commits else None
    damaged = now.facts.damaged(name)
    undigested = await now.facts.undigested(name) if newest else None
    return ModuleRow(
        name,
        state_of(newest, due, damaged, page.now),
        commits,
        due,
        days,
        damaged=damaged,
        undigested=undigested or 0,
    )


def _week(days: Mapping[int, Tally], now: int) -> charts.Strokes | None:
    """Return the chart of the changes of the last 7 days; None without commits in them.

    The `RECENT` commits may not cover all of them.
    """
    oldest = now // DAY_SECONDS - charts.WEEK.bars
    week = {day: tally for day, tally in days.items() if day > oldest}
    if not week:
        return None
    slots = charts.slots({oldest: Tally(entries=1), **week}, charts.WEEK, now, DAY_SECONDS)
    return charts.strokes(slots)
